//! Makes the socket: mode 0660, group `percept` where it exists, a stale one replaced and a live one left alone.

use anyhow::Context as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The group whose members may talk to the agent.
const GROUP: &str = "percept";

/// Listens at `path`.
///
/// # Errors
/// When another agent listens there, or the system refuses.
pub(super) fn listen(path: &Path) -> anyhow::Result<UnixListener> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    }
    if UnixStream::connect(path).is_ok() {
        anyhow::bail!("another agent listens at {}", path.display());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("remove the old socket {}", path.display()));
        }
        _ => {}
    }
    let listener = UnixListener::bind(path).with_context(|| format!("listen at {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))
        .with_context(|| format!("set the mode of {}", path.display()))?;
    if let Some(group) = group_id(GROUP) {
        // Who is no member of the group cannot give it away: the socket then stays the user's alone.
        if let Err(error) = std::os::unix::fs::chown(path, None, Some(group)) {
            tracing::debug!(%error, "the socket stays without the group {GROUP}");
        }
    }
    listener.set_nonblocking(true).context("prepare the socket")?;
    Ok(listener)
}

fn group_id(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").ok()?;
    let fields = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    fields.filter(|fields| fields.first() == Some(&name)).find_map(|fields| fields.get(2)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/percept.sock");
        drop(listen(&path).unwrap());

        let live = listen(&path).unwrap();

        assert!(listen(&path).unwrap_err().to_string().contains("another agent"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        drop(live);
    }
}
