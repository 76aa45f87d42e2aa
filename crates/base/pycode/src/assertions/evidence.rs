//! What decided, and what of many counts.

use infradev_model::Property;

/// A property with the text that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) property: Property,
    pub(super) text: String,
}

/// What several assertions check together: a resource before all; else what most of them check, and of as many the first in
/// [`Property::ALL`]; one that checks nothing only where all do.
pub(super) fn together(all: impl IntoIterator<Item = Evidence>) -> Option<Evidence> {
    let all: Vec<Evidence> = all.into_iter().collect();
    let times = |property| all.iter().filter(|one| one.property == property).count();
    let best = Property::ALL.into_iter().filter(|property| times(*property) > 0).max_by_key(|property| {
        let rank = match property {
            property if property.is_resource() => 2,
            Property::None => 0,
            _ => 1,
        };
        let place = Property::ALL.iter().position(|one| one == property);
        (rank, if rank == 2 { 0 } else { times(*property) }, std::cmp::Reverse(place))
    })?;
    all.into_iter().find(|one| one.property == best)
}
