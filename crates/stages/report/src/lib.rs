//! An analysis as tables that people read: the same tables for a terminal, Markdown and CSV. What a patch or a log says is text in
//! each of them, never markup.

mod csv_form;
mod markdown;
mod table;
mod tables;
mod text;

pub use csv_form::csv;
pub use markdown::markdown;
pub use table::{Column, Table};
pub use tables::{Extent, tables};
pub use text::plain;
