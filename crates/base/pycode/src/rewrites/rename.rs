//! Local variables under other names.

use super::{Candidate, Edits};

/// Every local that is bound by assignments alone gets another name, where no string of the function has it.
pub(crate) fn renamed_locals(candidate: &Candidate<'_>) -> Option<Edits> {
    let scope = &candidate.scope;
    let mut edits = Edits::new();
    for name in &scope.assigned {
        let other_meaning = scope.parameters.contains(name)
            || scope.bound_otherwise.contains(name)
            || scope.of_comprehensions.contains(name)
            || scope.words.contains(*name);
        if other_meaning || name.starts_with("__") {
            continue;
        }
        let fresh = candidate.fresh(&format!("{name}_here"));
        edits.extend(scope.places.get(name)?.iter().map(|span| (*span, fresh.clone())));
    }
    (!edits.is_empty()).then_some(edits)
}
