//! Calls that an agent may not make: what outlives its attempt, and what gives it every capability.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads,
};

/// Numbers of x32, a second way to the same calls on x86-64, are those of x86-64 with this bit.
const X32: i64 = 0x4000_0000;

/// From here on, for every thread of this process and whatever they start: no call on the kernel's keyrings, no user namespace.
///
/// A uid's keyring outlives all of its processes: what one attempt left there the next under the same uid would find. Within a
/// user namespace of its own code has every capability, and with it most of what the kernel offers to attack. `clone3`, whose flags
/// no filter can read, is answered as by a kernel that lacks it; C libraries then use `clone`. So are the calls of io_uring, by which a
/// process writes files that stand in no list of its descriptors. The kit forbids ranks the keyrings and namespaces too.
///
/// # Errors
/// The machine's architecture or its kernel knows no filters.
pub(crate) fn forbid_calls() -> std::io::Result<()> {
    for (rules, errno) in [(refused()?, libc::EPERM), (absent(), libc::ENOSYS)] {
        let program: BpfProgram = filter(rules, errno).map_err(std::io::Error::other)?;
        apply_filter_all_threads(&program).map_err(std::io::Error::other)?;
    }
    Ok(())
}

fn filter(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: i32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let answer = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, answer, architecture)?.try_into()
}

/// Calls that are refused, and under which conditions; without one, always.
fn refused() -> std::io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let namespace = || -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let flag = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
        let asked = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag), flag)?;
        Ok(vec![SeccompRule::new(vec![asked])?])
    };
    let mut rules = BTreeMap::new();
    for call in [libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl] {
        rules.insert(call, Vec::new());
    }
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        rules.insert(call, namespace().map_err(std::io::Error::other)?);
    }
    if cfg!(target_arch = "x86_64") {
        let second = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect::<Vec<_>>();
        rules.extend(second);
    }
    Ok(rules)
}

/// Calls that are answered as by a kernel that lacks them, for which programs have another way.
fn absent() -> BTreeMap<i64, Vec<SeccompRule>> {
    let calls =
        [libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
    let second = if cfg!(target_arch = "x86_64") { X32 } else { 0 };
    calls.into_iter().flat_map(|call| [call, call | second]).map(|call| (call, Vec::new())).collect()
}
