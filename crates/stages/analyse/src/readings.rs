//! What is read of a submission's patch and trajectory.

use infradev_model::{AnalysedSubmission, Digest};
use infradev_store::RunView;

use crate::kept;
use crate::own_tests::own_tests;
use crate::reading::Entry;
use crate::references::Reference;
use crate::tried::tried;

/// Fills in how close a submission is to golden, what its own tests check and how far its agent tried it; `tree` is its task's base.
pub(crate) fn read(
    shown: &mut AnalysedSubmission,
    entry: &Entry,
    grader: Option<&RunView>,
    reference: Option<&Reference>,
    tree: Option<&Digest>,
) {
    let patch = kept::patch(entry, grader);
    let trajectory = kept::trajectory(entry);
    let base = tree.and_then(|tree| kept::base_tree(grader?, tree));
    shown.likeness = patch.as_ref().and_then(|patch| reference?.likeness(patch));
    let is_test = |path: &[u8]| reference.is_some_and(|reference| reference.is_test(path));
    shown.own_tests = own_tests(patch.as_ref(), trajectory.as_ref(), &is_test, base.as_deref());
    shown.tried = trajectory.as_ref().map(tried);
}
