//! `infradev serve`.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use infradev_analyse::{Analyser, PeoplesLabels, Settings};
use infradev_model::TaskReference;
use infradev_report::serve::{Pages, bind, serve};
use infradev_report::{Site, read_pack};
use infradev_store::RunView;

use crate::cli::{Global, ServeArgs};
use crate::commands::report::{people, references, views};
use crate::report::{self, Failure};

/// Shows a report's pages until it is interrupted, which is how it ends well.
pub async fn run(global: &Global, args: ServeArgs) -> Result<ExitCode, Failure> {
    let labels = args.labels.as_deref().map(people).transpose()?;
    let references = references(args.pack.as_deref())?;
    let port = args.port;
    // A run that is not there, or cannot be read, is told before anything listens.
    let found = views(global, &args.runs)?;
    let folders: Vec<_> = found.iter().map(|view| view.folder.clone()).collect();
    // What keeps all that it reads costs memory, and a run that is done needs no second reading.
    let goes_on = found.iter().any(|view| !view.finished);
    let mut kept =
        Kept { views: found, analyser: if goes_on { Analyser::keeping() } else { Analyser::default() } };
    let first = kept.site(&args, labels.as_ref(), &references)?;
    let kept = Mutex::new(kept);
    let pages = Pages::new(folders, move || {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.site(&args, labels.as_ref(), &references).map_err(|failure| failure.into_parts().0)
    });
    // A run that went on meanwhile is read again: a site of what was under way is not kept.
    let pages = if goes_on { pages } else { pages.holding(first) };
    let listener = bind(port).await.map_err(|error| {
        Failure::usage(format!("cannot listen on 127.0.0.1:{port}: {error}"))
            .hint("leave --port out: a free one is taken")
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::fault(format!("cannot listen on 127.0.0.1: {error}")))?;
    report::print(format!("http://{address}/\n"))?;
    serve(listener, pages, infradev_supervise::cancel_requested())
        .await
        .map_err(|error| Failure::fault(format!("cannot serve on {address}: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// What was read of the runs.
struct Kept {
    views: Vec<RunView>,
    analyser: Analyser,
}

impl Kept {
    /// The site of the runs as they are now.
    fn site(
        &mut self,
        args: &ServeArgs,
        labels: Option<&PeoplesLabels>,
        references: &[TaskReference],
    ) -> Result<Site, Failure> {
        let packed = args.pack.as_deref().map(|pack| read_pack(pack, args.sealed)).transpose()?;
        // Where one cannot be read, those of the last time stay.
        let views = self.views.iter().cloned().map(RunView::again).collect::<Result<Vec<_>, _>>()?;
        self.views.clone_from(&views);
        let settings = Settings { labels, sealed: args.sealed, references };
        Ok(Site::new(self.analyser.analyse(views, settings)?, &self.views, packed.unwrap_or_default())?)
    }
}
