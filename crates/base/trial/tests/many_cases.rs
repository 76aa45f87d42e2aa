//! A large suite is reported whole. `INFRADEV_CASES=100000` makes it a measurement: what the harness took stands in the file
//! that `INFRADEV_PEAK` names.

mod ground;

use ground::Ground;
use infradev_model::Outcome::Passed;

#[test]
fn thousands_of_cases_are_reported_each_once() {
    let setting = |name: &str| std::env::var(name).ok();
    let count: usize = setting("INFRADEV_CASES").map_or(3000, |count| count.parse().unwrap());
    let test = format!(
        "import pytest\n\n@pytest.mark.parametrize('i', range({count}))\ndef test_one_of_many(i):\n    pass\n"
    );
    let mut ground = Ground::new(1, &[("lib/__init__.py", "")], &[("tests/test_many.py", &test)], &[]);
    ground.task.public.spec.timeouts.trial = 3600.0;
    ground.task.public.spec.limits.memory_mib = 8192;
    let result = ground.trial("");
    let ids: std::collections::BTreeSet<&str> =
        result.cases.iter().map(|case| case.case.id.as_str()).collect();
    assert_eq!((ids.len(), result.cases.len()), (count, count), "{:?}", result.notes);
    assert!(result.cases.iter().all(|case| case.outcomes() == [Passed]));
    if let Some(path) = setting("INFRADEV_PEAK") {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        let timing = &result.timing;
        let said = format!(
            "{count} cases, {peak}, wall {:.1} s, harness {:.1} s\n",
            timing.wall_s, timing.harness_cpu_s
        );
        std::fs::write(path, said).unwrap();
    }
}
