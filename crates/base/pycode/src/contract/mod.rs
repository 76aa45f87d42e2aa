//! The interface contract: the names that a change adds, those of them that tests touch, and whether what an agent
//! reads states these and gives away nothing else.

mod accesses;
mod added;
mod attributes;
mod bindings;
mod defaults;
mod draft;
mod embedded;
mod interface;
mod lazy;
mod leaks;
mod made;
mod making;
mod marks;
mod outline;
mod reflected;
mod signature;
mod slots;
mod special;
mod top_level;
mod touched;
mod touching;
mod tree;
mod typed;
mod words;

pub use added::{AddedKind, AddedName, added};
pub use attributes::attribute_names;
pub use draft::DraftedName;
pub use interface::{Interface, TouchedAt};
pub use leaks::{Leaks, NGRAM, PROSE, Sifted, Texts, without_allowed};
pub(crate) use outline::words_of;
pub use outline::{Class, Function, Mark, Outline, Parameter, Variable, Word};
pub use touched::Touched;
pub use tree::{Object, SourceTree};
