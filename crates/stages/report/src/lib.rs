//! An analysis as tables that people read, the same for a terminal, Markdown and CSV, and as pages: in a folder that opens from disk,
//! and from a server on this machine. What a patch or a log says is text in each of them, never markup.

mod csv_form;
mod listed;
mod markdown;
mod readings;
pub mod serve;
pub mod site;
mod table;
mod tables;
mod text;

pub use csv_form::csv;
pub use markdown::markdown;
pub use site::{Material, Site, SiteError, read_pack, write_site};
pub use table::{Column, Table};
pub use tables::{Extent, tables};
pub use text::plain;
