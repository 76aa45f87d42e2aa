//! A hollow tree imports where golden's does: what Python calls while it imports keeps its body, by protocol too, and the rest
//! of the same classes does not.

use infradev_pycode::{Reason, Variant, hollow};

const PROTOCOLS: &str = include_str!("fixtures/protocol_golden.py");
const NO_BASE: &[(&str, &str)] = &[];

fn hollowed(golden: &[(&str, &str)]) -> Vec<String> {
    let result = hollow(NO_BASE, golden, Variant::Full).expect("hollows");
    assert!(result.kept.iter().all(|(_, why)| *why == Reason::RunsOnImport), "{:?}", result.kept);
    result.hollowed.into_iter().map(|name| name.name).collect()
}

#[test]
fn what_python_calls_by_protocol_while_it_imports_stays() {
    let result = hollow(NO_BASE, &[("m.py", PROTOCOLS)], Variant::Full).expect("hollows");
    let hollowed: Vec<&str> = result.hollowed.iter().map(|name| name.name.as_str()).collect();
    let kept: Vec<String> = result.kept.iter().map(|(name, why)| format!("{}: {why}", name.name)).collect();
    insta::assert_snapshot!(format!("hollowed: {}\n\n{}", hollowed.join(", "), kept.join("\n")));
}

#[test]
fn a_module_that_answers_for_names_keeps_its_answer_and_what_it_asks() {
    let golden = "def __getattr__(name):\n    return load(name)\n\ndef __dir__():\n    return names()\n\n\
                  def load(name):\n    return name\n\ndef names():\n    return ['a']\n\ndef other():\n    return 1\n";
    assert_eq!(hollowed(&[("pack/__init__.py", golden)]), ["other"]);
}

#[test]
fn a_class_without_an_instance_on_import_is_hollow_in_all_but_its_hooks() {
    let golden = "class Ring:\n    def __len__(self):\n        return 1\n\n    def __eq__(self, other):\n        \
                  return True\n\n    def __class_getitem__(cls, key):\n        return cls\n\ndef ring() -> Ring:\n    \
                  return Ring()\n";
    assert_eq!(hollowed(&[("m.py", golden)]), ["Ring.__len__", "Ring.__eq__", "ring"]);
}

#[test]
fn methods_of_what_another_file_made_stay_where_import_calls_them() {
    let registry = "class Registry:\n    def register(self, name):\n        def note(f):\n            self.keep(f)\n            \
                    return f\n        return note\n\n    def keep(self, f):\n        pass_on(f)\n\n    def find(self):\n        \
                    return 1\n\ndef pass_on(f):\n    return f\n\nOPS = Registry()\n";
    let user = "import torch\nfrom .registry import OPS\n\n@OPS.register('relu')\ndef relu(x):\n    return x\n\n\
                F = torch.find()\n";
    assert_eq!(hollowed(&[("ops/registry.py", registry), ("ops/user.py", user)]), ["Registry.find", "relu"]);
}
