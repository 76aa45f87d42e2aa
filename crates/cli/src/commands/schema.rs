//! `infradev schema`.

use std::process::ExitCode;

use infradev_model::schemas;

use crate::cli::SchemaArgs;
use crate::report::{self, Failure};
use crate::session::nearest;

/// Prints one schema, or the names of all.
pub fn run(args: SchemaArgs) -> Result<ExitCode, Failure> {
    let all = schemas();
    let stem = |file: &str| file.strip_suffix(".schema.json").unwrap_or(file).to_string();
    let names: Vec<String> = all.iter().map(|(file, _)| stem(file)).collect();
    let Some(wanted) = args.name else {
        report::print(names.join("\n") + "\n")?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(index) = names.iter().position(|name| *name == stem(&wanted)) else {
        let hint = match nearest(&wanted, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        };
        return Err(Failure::usage(format!("there is no schema `{wanted}`")).hint(hint));
    };
    report::print(&all[index].1)?;
    Ok(ExitCode::SUCCESS)
}
