//! What was built, laid over a tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use infradev_model::{Overlaid, OverlayAction};
use infradev_pyenv::Layer;
use infradev_store::Sharing;

use crate::trial::TrialSpec;
use crate::workspace::{Ingredients, files_below, link_or_copy, make_real_parents, path_of};

/// Lays a tree's layer over it. What the patch itself put where the build's outputs go is removed first, and told: it would be
/// tested in their place.
pub(crate) fn lay_built(tree: &Path, parts: &Ingredients<'_>) -> io::Result<Vec<Overlaid>> {
    let Some(build) = parts.build else { return Ok(Vec::new()) };
    let mut purged = Vec::new();
    for relative in files_below(tree)?.into_iter().filter(|relative| build.makes(path_of(relative))) {
        fs::remove_file(tree.join(&relative))?;
        let path = relative.to_string_lossy().into_owned();
        purged.push(Overlaid { path, action: OverlayAction::Purged });
    }
    if let Some(layer) = parts.layer {
        lay(tree, layer, parts.sharing)?;
    }
    Ok(purged)
}

fn lay(tree: &Path, layer: &Layer, sharing: Sharing) -> io::Result<()> {
    for file in &layer.files {
        let (from, to) = (layer.folder.join(file), tree.join(file));
        make_real_parents(tree, Path::new(file))?;
        match fs::symlink_metadata(&to) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&to)?,
            Ok(_) => fs::remove_file(&to)?,
            Err(_) => {}
        }
        match sharing {
            Sharing::Links => link_or_copy(&from, &to)?,
            Sharing::Private => fs::copy(&from, &to).map(drop)?,
        }
    }
    Ok(())
}

/// The base tree as probes see it: with what was built of it, where that is anything.
pub(crate) fn base_of(spec: &TrialSpec) -> io::Result<PathBuf> {
    let Some(layer) = spec.building.as_ref().and_then(|building| building.base.as_ref()) else {
        return Ok(spec.tree.path.clone());
    };
    let path = spec.scratch.join("base");
    if !path.is_dir() {
        let sharing = spec.sharing();
        spec.trees.workspace(&spec.tree, &path, sharing).map_err(io::Error::other)?;
        lay(&path, layer, sharing)?;
    }
    Ok(path)
}
