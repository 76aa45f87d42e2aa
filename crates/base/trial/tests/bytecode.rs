//! Bytecode of the base tree: used for what a patch left alone, for nothing else, and written by no rank.

mod ground;

use ground::{Ground, outcomes};
use infradev_model::{Outcome::Passed, Selection};

const OFFICIAL: &str = r#"import os, sys
import pytest
import lib.changed, lib.kept, lib.sub.deep


def has_bytecode(module):
    return os.path.isfile(module.__spec__.cached)


def test_kept_modules_come_with_bytecode():
    assert has_bytecode(lib.kept) and has_bytecode(lib.sub.deep)
    assert lib.kept.VALUE == 1


def test_a_changed_module_is_itself_though_base_has_bytecode_of_that_name_and_length():
    assert has_bytecode(lib.changed)
    assert lib.changed.VALUE == 2


def test_no_rank_can_leave_bytecode():
    import new
    assert not os.path.exists(new.__spec__.cached)
    with pytest.raises(OSError):
        open(os.path.join(sys.pycache_prefix, "workspace", "lib", "planted"), "w")
    assert not os.path.exists(os.path.join(os.path.dirname(lib.__file__), "__pycache__"))
"#;

const CHANGE: &str = "\
diff --git a/lib/changed.py b/lib/changed.py
--- a/lib/changed.py
+++ b/lib/changed.py
@@ -1 +1 @@
-VALUE = 1
+VALUE = 2
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+VALUE = 3
";

#[test]
fn what_a_patch_left_alone_is_compiled_already_and_what_it_changed_is_compiled_anew() {
    let base = [
        ("lib/__init__.py", ""),
        ("lib/kept.py", "VALUE = 1\n"),
        ("lib/changed.py", "VALUE = 1\n"),
        ("lib/sub/__init__.py", ""),
        ("lib/sub/deep.py", ""),
        ("lib/broken.py", "def ("),
    ];
    let ground = Ground::new(2, &base, &[("tests/test_x.py", OFFICIAL)], &[]);
    let result = ground.trial(CHANGE);
    assert_eq!(result.fault, None);
    for (id, vector) in outcomes(&result) {
        assert_eq!(vector, [Passed, Passed], "{id}: {:#?}", result.cases);
    }
    assert_eq!(result.cases.len(), 3);
}

#[test]
fn where_there_is_no_test_file_nothing_is_started() {
    let mut ground = Ground::new(1, &[("lib/__init__.py", "")], &[("tests/test_x.py", "")], &[]);
    ground.selection = Selection::BaseTests;
    let result = ground.trial("");
    assert_eq!((result.fault, result.launches, result.cases.len()), (None, 0, 0));
    assert_eq!(result.sandbox, Default::default());
}
