use crate::cli::*; use crate::report::Failure; use std::process::ExitCode;
pub fn run(_: &Global, _: NewArgs) -> Result<ExitCode, Failure> { Err(Failure::usage("later")) }
