//! What runs show: every submission, the cases that golden passes and it does not, each with a signature and a label of the
//! paper's taxonomy, and figures with their intervals. Reads run folders; starts no process.

mod analyser;
mod cases;
mod counted_readings;
mod error;
mod figures;
mod gates;
mod kept;
mod labelling;
mod likeness;
mod messages;
mod own_tests;
mod people;
mod reading;
mod readings;
mod references;
mod shown;
pub mod signature;
pub mod statistics;
mod tried;

use infradev_model::{Analysis, TaskReference};
use infradev_store::RunView;

pub use analyser::Analyser;
pub use error::AnalyseError;
pub use labelling::Seen;
pub use people::PeoplesLabels;
pub use shown::public_name;

/// How runs are read.
#[derive(Clone, Copy, Default)]
pub struct Settings<'a> {
    /// People's labels, which win over rules, and agents', which stand where rules left a case open.
    pub labels: Option<&'a PeoplesLabels>,
    /// Keep names, messages and traits of probes.
    pub sealed: bool,
    /// Golden and official tests of tasks, for runs that keep none.
    pub references: &'a [TaskReference],
}

/// Analyses runs together.
///
/// # Errors
/// A run of a verb without submissions, one that is given twice, a document of another schema version, a label whose case is gone.
pub fn analyse(views: Vec<RunView>, settings: Settings<'_>) -> Result<Analysis, AnalyseError> {
    Analyser::once().analyse(views, settings)
}
