//! Python syntax, read by ruff's parser: what a file defines, hollow bodies, mutants, equality of syntax trees, twins of
//! tests, canaries. Pure functions over text: nothing here reads a file, starts a process or imports Python.
//!
//! Every span is a half-open range of byte offsets into the text it was read from; lines and columns count from 1.

mod asks;
pub mod assertions;
mod canary;
pub mod contract;
mod definitions;
mod equality;
mod extent;
mod hollow;
mod import_time;
mod module;
mod mutants;
mod names;
mod perturbed;
mod replace;
mod rewrites;
mod shapes;
mod stub;
mod twins;

pub use asks::{Ask, Asked};
pub use canary::{Canary, canary};
pub use definitions::{Accessor, Definition, DefinitionKind};
pub use equality::ast_equal;
pub use extent::lines_around;
pub use hollow::{HollowError, Hollowed, QualifiedName, Reason, Variant, hollow};
pub use module::{Module, ParseError, Span};
pub use mutants::{MutationSource, mutants, mutants_unless};
pub use names::{TopLevelKind, TopLevelName, top_level_names};
pub use rewrites::{Rewrite, RewriteKind, RewriteSource, rewrites};
pub use shapes::{Shape, Shapes};
pub use twins::{Twin, names_of_tests, twins};
