//! Host uids for trials that run at once.

use crate::error::SandboxError;
use crate::locks::{Held, LockFolder};
use crate::spec::Uids;

const FIRST: u32 = 200_000;
const WIDTH: u32 = 16;
const SLOTS: u32 = 2048;

/// A range of 16 host uids that no other trial on this machine has: one for the launcher, 15 for ranks. Ends when
/// dropped or when this process ends.
#[derive(Debug)]
pub struct UidLease {
    /// The uids.
    pub uids: Uids,
    _held: Held,
}

impl UidLease {
    /// The first free range.
    ///
    /// # Errors
    /// The lock folder is unusable, or 2048 trials run at once.
    pub fn acquire(locks: &LockFolder) -> Result<UidLease, SandboxError> {
        for slot in 0..SLOTS {
            if let Some(held) = locks.try_lock(&format!("uids-{slot}"))? {
                let launcher = FIRST + WIDTH * slot;
                return Ok(UidLease { uids: Uids { launcher, ranks_base: launcher + 1 }, _held: held });
            }
        }
        Err(SandboxError::NoUidsLeft { slots: SLOTS })
    }
}

impl Uids {
    /// Whether this process can give its children these uids on the host.
    pub(crate) fn granted(self) -> bool {
        crate::privilege::may_change_uid(self.launcher, WIDTH)
    }

    /// Uids and gids of the range, the launcher's first.
    pub(crate) fn all(self) -> impl Iterator<Item = u32> {
        std::iter::once(self.launcher).chain((0..WIDTH - 1).map(move |rank| self.ranks_base + rank))
    }
}

/// Whether this process can give its children host uids of their own. Where not, the launcher must not try to change uid.
pub fn uid_separation_granted() -> bool {
    crate::privilege::may_change_uid(FIRST, WIDTH * SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_at_once_have_ranges_apart_and_a_free_one_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let locks = LockFolder::at(folder.path()).unwrap();
        let first = UidLease::acquire(&locks).unwrap();
        let second = UidLease::acquire(&locks).unwrap();
        assert_eq!(first.uids, Uids { launcher: 200_000, ranks_base: 200_001 });
        assert_eq!(second.uids, Uids { launcher: 200_016, ranks_base: 200_017 });
        assert_eq!(first.uids.all().last(), Some(200_015));
        drop(first);
        assert_eq!(UidLease::acquire(&locks).unwrap().uids.launcher, 200_000);
    }
}
