//! What this machine is: as far as a decision depends on it.

/// Bytes of memory the machine has.
#[must_use]
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "the field is narrower on 32-bit machines")]
    let total = u64::try_from(info.totalram).unwrap_or(u64::MAX);
    total.saturating_mul(u64::from(info.mem_unit).max(1))
}

/// This boot of the machine. Without the kernel's word every run is a boot of its own: nothing of an earlier one is then
/// corrected by mistake.
#[must_use]
pub fn boot_id() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    read.map_or_else(|_| uuid::Uuid::new_v4().to_string(), |text| text.trim().to_owned())
}

/// Bytes that an ordinary user may still write on the file system of `dir`.
#[must_use]
pub fn free_bytes(dir: &std::path::Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
