//! Templates of a warm session: for each world size a rank that has collected golden's tests and forks the ranks of variants
//! from there (`template.py`). What a template cannot give, ranks that start from nothing do.

use std::time::Duration;

use infradev_model::Timeouts;
use serde_json::json;
use tokio::time::Instant;

use crate::events::Silent;
use crate::launcher::{LaunchRequest, Launcher, LauncherError};
use crate::meters::SandboxMeters;
use crate::official::{self, OfficialSuite};
use crate::ranks::Network;
use crate::session::{Ask, Session, Tried};
use crate::trial::TrialError;

/// Where the numbers of a template's launches start, and with them its ports: apart from those of its session.
const FIRST_LAUNCH: u32 = 500;

/// A template of one world size.
pub(crate) struct Template {
    /// It forks its worlds itself.
    pub launcher: Launcher,
    /// Its own number in the session's launcher.
    launch: u32,
}

impl Session {
    /// Has a template for each of these world sizes, where golden's tests allow one; `followed` are the files that variants
    /// differ in. To be called where golden's tree is laid.
    ///
    /// # Errors
    /// The sandbox does not start.
    pub async fn warm(
        &mut self,
        worlds: &[u32],
        followed: &[String],
        timeouts: &Timeouts,
    ) -> Result<(), TrialError> {
        if self.is_stale() {
            self.stop().await;
        }
        // With CUDA, or autograd's threads, nothing may be forked of a process in which the repository has run.
        if !self.spec.gpus.is_empty() || !self.laid.is_empty() {
            return Ok(());
        }
        for world in worlds {
            if self.templates.contains_key(world) || self.without_template.contains(world) {
                continue;
            }
            match self.template(*world, followed, timeouts).await {
                Ok(template) => {
                    self.templates.insert(*world, template);
                }
                Err(error) => {
                    tracing::info!(world, %error, "ranks of variants start from nothing");
                    self.without_template.insert(*world);
                }
            }
        }
        Ok(())
    }

    /// Whether ranks of a template would run a variant at this world size.
    pub fn has_template(&self, world: u32) -> bool {
        self.templates.contains_key(&world)
    }

    /// Gives up the template of a world size: its ranks do not do what ranks that start from nothing do.
    pub async fn give_up_template(&mut self, world: u32) {
        tracing::info!(
            world,
            "golden does otherwise in ranks of a template: those of variants start from nothing"
        );
        self.without_template.insert(world);
        let Some(template) = self.templates.remove(&world) else { return };
        if self.end_template(template).await.is_err() {
            // Its launcher is gone: what comes next starts another.
            self.stop().await;
        }
    }

    async fn template(
        &mut self,
        world: u32,
        followed: &[String],
        timeouts: &Timeouts,
    ) -> Result<Template, LauncherError> {
        self.begin_variant(&[], true, Some(world)).await?;
        let top_level: Vec<&String> = self.workspace.top_level.iter().map(|(name, _)| name).collect();
        let inside = self.inside.as_mut().ok_or_else(|| LauncherError::Gone("it was not started".into()))?;
        let setup = &inside.setup;
        let mut args = setup.common_args(&setup.paths.workspace);
        args["mode"] = json!("template");
        args["files"] = json!(self.workspace.files);
        args["followed"] = json!(followed);
        args["plugins"] = json!(self.spec.task.public.spec.tests.plugins);
        args["top_level"] = json!(top_level);
        let next = inside.launcher.launches;
        let request = LaunchRequest {
            size: 1,
            env: &setup.common_env(next, world, Network::Shared),
            rank_env: setup.rank_env(1),
            cwd: &setup.paths.workspace,
            networks: Vec::new(),
            args,
        };
        let patience = Duration::from_secs_f64(timeouts.collect);
        let (launch, mut launcher) = inside.launcher.fork_template(request, patience).await?;
        launcher.launches = FIRST_LAUNCH;
        Ok(Template { launcher, launch })
    }

    /// Runs official cases in ranks of a template. `None` where there is none for this world size, or this variant needs other
    /// ranks: nothing is known then.
    pub(crate) async fn resumed(
        &mut self,
        ask: &Ask<'_>,
        files: &[String],
        begin: Instant,
    ) -> Result<Option<Tried>, LauncherError> {
        if !ask.resumes || !self.templates.contains_key(&ask.world) || self.is_stale() {
            return Ok(None);
        }
        self.begin_variant(&[], false, Some(ask.world)).await?;
        let Some(mut template) = self.templates.remove(&ask.world) else { return Ok(None) };
        let replaced: Vec<String> = self.laid.keys().cloned().collect();
        let inside = self.started()?;
        let suite = OfficialSuite {
            world: ask.world,
            files: files.to_vec(),
            plugins: &[],
            top_level: &[],
            wanted: &|id| ask.cases.is_none_or(|wanted| wanted.contains(id)),
            timeouts: ask.timeouts,
            shuffle: None,
            stop: ask.stop,
            over: begin + Duration::from_secs_f64(ask.timeouts.trial),
            eager: ask.eager,
            ends: ask.ends,
            deadlines: ask.deadlines,
            replaced: Some(&replaced),
        };
        let mut meters = SandboxMeters::new(&inside.sandbox);
        let ran = official::run(&mut template.launcher, &inside.setup, &suite, &Silent, &mut meters).await;
        match ran {
            // The variant took its template along: ranks that start from nothing say what it does.
            Ok(outcome) if outcome.lost => self.end_template(template).await.map(|()| None),
            Err(error) if error.is_lost() => self.end_template(template).await.map(|()| None),
            Err(error) => Err(error),
            Ok(outcome) => {
                self.templates.insert(ask.world, template);
                if let Some(why) = &outcome.unfit {
                    tracing::debug!(why, "a variant's ranks start from nothing");
                    return Ok(None);
                }
                Ok(Some(Tried { resumed: true, ..Tried::of_official(outcome, begin) }))
            }
        }
    }

    async fn end_template(&mut self, template: Template) -> Result<(), LauncherError> {
        template.launcher.shutdown().await;
        self.started()?.launcher.end(template.launch).await.map(|_| ())
    }
}
