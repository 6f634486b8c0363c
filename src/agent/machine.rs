//! What this machine is: as far as a decision depends on it.

/// Bytes of memory the machine has.
#[must_use]
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "the field is narrower on 32-bit machines")]
    let total = u64::try_from(info.totalram).unwrap_or(u64::MAX);
    total.saturating_mul(u64::from(info.mem_unit).max(1))
}
