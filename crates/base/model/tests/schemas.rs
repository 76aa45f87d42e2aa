//! The checked-in schemas are those of the types. `UPDATE_SCHEMAS=1 cargo test -p infradev-model` rewrites them.

use std::path::Path;

#[test]
fn the_checked_in_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../schemas");
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    for (name, text) in infradev_model::schemas() {
        let path = folder.join(name);
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, text, "schemas/{name} is stale: run UPDATE_SCHEMAS=1 cargo test -p infradev-model");
    }
}
