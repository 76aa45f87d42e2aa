use crate::cli::*; use crate::report::Failure; use std::process::ExitCode;
pub async fn run(_: &Global, _: TryArgs) -> Result<ExitCode, Failure> { Err(Failure::usage("later")) }
pub async fn list(_: &Global, _: ListProbesArgs) -> Result<ExitCode, Failure> { Err(Failure::usage("later")) }
