//! What a submission's own tests check.

use std::path::Path;

use infradev_model::OwnTests;
use infradev_model::atif::Trajectory;
use infradev_patch::{Patch, looks_like_test};
use infradev_pycode::assertions::{Share, assertions_of_patch, assertions_of_trajectory};

use crate::kept::text_after;

/// The assertions that a patch adds to its tests and those that a trajectory wrote; none where neither was read. `is_test` takes
/// what lies in the task's test trees; `base` is the tree before the patch, where it is at hand.
pub(crate) fn own_tests(
    patch: Option<&Patch>,
    trajectory: Option<&Trajectory>,
    is_test: &dyn Fn(&[u8]) -> bool,
    base: Option<&Path>,
) -> Option<OwnTests> {
    if patch.is_none() && trajectory.is_none() {
        return None;
    }
    let mut tests = OwnTests::default();
    if let Some(patch) = patch {
        let added = assertions_of_patch(
            patch,
            |path| is_test(path) || looks_like_test(path),
            |path| text_after(patch, path, base?),
        );
        tests.unread = u32::try_from(added.unread.len()).unwrap_or(u32::MAX);
        tests.added = Share::of(added.assertions()).counts;
    }
    if let Some(trajectory) = trajectory {
        let written = assertions_of_trajectory(trajectory);
        tests.unread += u32::try_from(written.unparsed).unwrap_or(u32::MAX);
        tests.written = Some(written.share().counts);
    }
    Some(tests)
}
