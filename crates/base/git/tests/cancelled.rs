//! A capture that the person ends. In a file of its own: the wish to stop holds for the whole process.

use std::fs;

use infradev_git::{Base, GitError, capture};
use infradev_model::{Class, Classified};

#[test]
fn a_capture_stops_between_files_once_an_end_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (base, work) = (folder.path().join("base"), folder.path().join("work"));
    fs::create_dir(&base).unwrap();
    fs::create_dir(&work).unwrap();
    fs::write(work.join("new"), "new\n").unwrap();
    assert!(!capture(Base::Folder(&base), &work).unwrap().patch.is_empty());
    infradev_supervise::cancel();
    let error = capture(Base::Folder(&base), &work).unwrap_err();
    assert!(matches!(error, GitError::Interrupted), "{error}");
    assert_eq!(error.class(), Class::Interrupted);
}
