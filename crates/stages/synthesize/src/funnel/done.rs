//! What is finished of a synthesis: journals of the run, a line for each mutant and each rewrite.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use infradev_model::{Digest, MutantRecord, RewriteRecord};
use infradev_store::StoreError;
use infradev_store::journal::Journal;
use serde::{Deserialize, Serialize};

/// A finished mutant in the run's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finished {
    pub key: Digest,
    pub record: MutantRecord,
}

/// A finished rewrite, in a journal of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FinishedRewrite {
    pub key: Digest,
    pub digest: Digest,
    pub record: RewriteRecord,
}

/// What is finished of one kind, with the journal that it stands in.
pub(super) struct Done<E: Journaled> {
    journal: Journal<E>,
    pub records: BTreeMap<Digest, E::Record>,
}

/// An event of a journal that says what became of one thing under some conditions.
pub(super) trait Journaled: Serialize + for<'de> Deserialize<'de> {
    type Record: Clone;

    /// The conditions, which thing, and what became of it.
    fn parts(self) -> (Digest, Digest, Self::Record);
}

impl Journaled for Finished {
    type Record = MutantRecord;

    fn parts(self) -> (Digest, Digest, MutantRecord) {
        (self.key, self.record.mutant.digest.clone(), self.record)
    }
}

impl Journaled for FinishedRewrite {
    type Record = RewriteRecord;

    fn parts(self) -> (Digest, Digest, RewriteRecord) {
        (self.key, self.digest, self.record)
    }
}

impl<E: Journaled> Done<E> {
    /// What earlier processes finished under the same conditions, of what is `wanted`.
    pub(super) fn open(path: &Path, key: &Digest, wanted: &BTreeSet<Digest>) -> Result<Done<E>, StoreError> {
        let (journal, contents) = Journal::<E>::open(path)?;
        let mut records = BTreeMap::new();
        for (_, event) in contents.events {
            let (under, digest, record) = event.parts();
            if under == *key && wanted.contains(&digest) {
                records.insert(digest, record);
            }
        }
        Ok(Done { journal, records })
    }

    pub(super) fn add(&mut self, event: E) -> Result<(), StoreError>
    where
        E: Clone,
    {
        self.journal.append(&event)?;
        let (_, digest, record) = event.parts();
        self.records.insert(digest, record);
        Ok(())
    }
}
