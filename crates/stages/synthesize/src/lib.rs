//! Synthesis: what a task needs beside its golden patch, made and proved by machine.

pub mod contract;
pub mod funnel;
