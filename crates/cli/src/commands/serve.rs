//! `infradev serve`.

use std::process::ExitCode;

use infradev_analyse::{PeoplesLabels, Settings, analyse};
use infradev_report::serve::{Pages, bind, serve};
use infradev_report::{Site, read_pack};
use infradev_store::RunView;

use crate::cli::{Global, ServeArgs};
use crate::commands::report::{people, views};
use crate::report::{self, Failure};

/// Shows a report's pages until it is interrupted, which is how it ends well.
pub async fn run(global: &Global, args: ServeArgs) -> Result<ExitCode, Failure> {
    let labels = args.labels.as_deref().map(people).transpose()?;
    let port = args.port;
    // A run that is not there, or cannot be read, is told before anything listens.
    let found = views(global, &args.runs)?;
    let folders: Vec<_> = found.iter().map(|view| view.folder.clone()).collect();
    let given: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    drop(site(found, &args, labels.as_ref())?);
    let global = global.clone();
    let pages = Pages::new(folders, move || {
        let made = views(&global, &given).and_then(|views| site(views, &args, labels.as_ref()));
        made.map_err(|failure| failure.into_parts().0)
    });
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

fn site(views: Vec<RunView>, args: &ServeArgs, labels: Option<&PeoplesLabels>) -> Result<Site, Failure> {
    let packed = args.pack.as_deref().map(|pack| read_pack(pack, args.sealed)).transpose()?;
    // The analysis takes the runs; pages are drawn of the same folders.
    let again = views.iter().map(crate::commands::report::again).collect::<Result<Vec<_>, _>>()?;
    let settings = Settings { labels, sealed: args.sealed, ..Settings::default() };
    Ok(Site::new(analyse(views, settings)?, &again, packed.unwrap_or_default())?)
}
