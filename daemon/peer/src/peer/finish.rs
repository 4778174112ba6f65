//! The files that a trained peer writes: its model, then its summary, then that its run is over.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_net::multicast::PayloadMedium;

use super::{Outcome, Peer};
use crate::driver::{Finished, before_the_model};
use crate::error::{Context, ErrorKind, Result};
use crate::events::Event;
use crate::follow::serving::RoundModel;
use crate::home::write_file;
use crate::overlap::OverlapTaken;
use crate::results::{self, Summary};
use crate::status::{PeerState, RobustReceiving};
use crate::stop::StopRequests;
use crate::task::TaskCard;
use crate::training::{Best, BestModel, Layout, LocalTraining, ModelEncoder, TrainingError, model_file};

/// The goals of a run.
pub(super) struct RunWanted<'a> {
    /// Number of rounds.
    pub(super) rounds: u64,
    /// The task.
    pub(super) card: &'a dyn TaskCard,
    /// The format of the model's file.
    pub(super) form: ModelForm,
}

/// The format of a model's file: as its training encodes it, or by its layout.
pub(super) struct ModelForm {
    encoder: ModelEncoder,
    layout: Layout,
}

impl ModelForm {
    pub(super) fn of(training: &dyn LocalTraining) -> Self {
        Self { encoder: training.model_encoder(), layout: training.layout().clone() }
    }
}

impl Peer {
    /// Writes the model, the summary, and that the run is over, in this order.
    pub(super) async fn finish(
        &mut self,
        mut finished: Finished,
        wanted: RunWanted<'_>,
        stop: &mut StopRequests,
    ) -> Result<Outcome> {
        let mut summary = Summary {
            schema: Summary::schema(),
            peer: self.identity.peer_id().to_string(),
            node: finished.place.node.0,
            plan: finished.place.hash.clone(),
            task: wanted.card.describe(),
            rounds: finished.rounds,
            rounds_wanted: finished.place.plan.last_round(wanted.rounds),
            skipped: finished.skipped,
            metrics: finished.evaluation.metrics.clone(),
            metrics_of: finished.metrics_of,
            best: self.best_of(finished.best.take(), stop).await?,
            privacy: finished.privacy,
            robust: RobustReceiving::of(&finished.node),
            seconds: self.started.elapsed().as_secs_f64(),
            sent_bytes: finished.traffic.sent_bytes,
            received_bytes: finished.traffic.received_bytes,
            encoding: finished.traffic.encoding(finished.node.codec()),
            multicast: (self.options.medium != PayloadMedium::Unicast).then_some(finished.traffic.multicast),
            momentum_across_rounds: Some(finished.momentum.taken()),
            overlap: OverlapTaken::of(&finished.node),
            peak_resident_bytes: results::peak_resident_bytes(),
            model_blake3: None,
            ledger: finished.node.ledger(),
            alone: None,
        };
        let parameters = finished.node.ratio();
        let described = metadata(&summary);
        let file = self.model_file(wanted.form, &parameters, described.clone(), stop).await?;
        summary.model_blake3 = Some(blake3::hash(&file).to_hex().to_string());
        self.write_results(&summary, &file)?;
        if let Some(ending) = &finished.ending {
            ending.write(&self.home)?;
        }
        finished.timeline.flush();
        let round = summary.rounds;
        let last_round = summary.rounds_wanted;
        let model = Arc::clone(&parameters);
        tokio::select! {
            () = finished.followers.see_off(RoundModel { round, last_round, model, metadata: described }) => {}
            reason = stop.next() => tracing::debug!(reason, "followers are not waited for"),
        }
        self.log.tell(done(&summary));
        let is_done = summary.rounds >= summary.rounds_wanted;
        self.board.update(|status| status.state = if is_done { PeerState::Done } else { PeerState::Stopped });
        let was_stopped = finished.was_stopped && !is_done;
        Ok(Outcome::Trained { summary: Box::new(summary), parameters, was_stopped })
    }

    /// Writes the model and the summary. Of a run that was stopped before its first round, no model replaces one that was
    /// trained.
    fn write_results(&self, summary: &Summary, model: &[u8]) -> Result {
        let path = self.home.model();
        if summary.rounds == 0 && summary.rounds_wanted > 0 && path.exists() {
            let path = path.display();
            let message = format!("no round is done: {path} and the summary beside it stay those of the run before");
            self.log.tell(Event::Warning { message });
            return Ok(());
        }
        write_file(&path, model)?;
        summary.write(&self.home)
    }

    /// The best model, once its file is written.
    async fn best_of(&mut self, kept: Option<BestModel>, stop: &mut StopRequests) -> Result<Option<Best>> {
        let (Some(kept), Some(wanted)) = (kept, &self.options.keep_best) else { return Ok(None) };
        let writing = tokio::task::spawn_blocking(move || kept.finish());
        let best = tokio::select! {
            best = writing => best.ok().flatten(),
            reason = stop.insists() => return Err(before_the_model(&reason)),
        };
        if best.is_none() {
            let message = format!("no model was kept as the best: `{}` was never measured", wanted.metric);
            self.log.tell(Event::Warning { message });
        }
        Ok(best)
    }

    /// The model as the bytes of a file. If the training's encoder fails, its format is lost, never the model.
    async fn model_file(
        &mut self,
        ModelForm { encoder, layout }: ModelForm,
        parameters: &Arc<[f32]>,
        metadata: BTreeMap<String, String>,
        stop: &mut StopRequests,
    ) -> Result<Vec<u8>> {
        let own = Arc::clone(parameters);
        let own_metadata = metadata.clone();
        let encoding = tokio::task::spawn_blocking(move || described(encoder(&own), &own_metadata));
        let encoded = tokio::select! {
            encoded = encoding => encoded.unwrap_or_else(|panic| Err(panic.into())),
            reason = stop.insists() => return Err(before_the_model(&reason)),
        };
        encoded.or_else(|failure| {
            let message = format!("the model is written by its layout, for its training cannot encode it: {failure}");
            self.log.tell(Event::Warning { message });
            let file = described(model_file::encode(&layout, parameters), &metadata);
            file.context(ErrorKind::Unexpected, "cannot encode the model")
        })
    }
}

/// A file with its metadata and checksum.
fn described(
    file: Result<Vec<u8>, TrainingError>,
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, TrainingError> {
    let mut file = file?;
    model_file::describe(&mut file, metadata)?;
    Ok(file)
}

fn metadata(summary: &Summary) -> BTreeMap<String, String> {
    let measured = summary.metrics.iter().map(|(name, value)| (name.to_owned(), value.to_string()));
    let known =
        [("plan", summary.plan.clone()), ("task", summary.task.clone()), ("rounds", summary.rounds.to_string())];
    measured.chain(known.map(|(key, value)| (key.to_owned(), value))).collect()
}

fn done(summary: &Summary) -> Event {
    Event::Done {
        round: summary.rounds,
        skipped: summary.skipped,
        metrics: summary.metrics.clone(),
        metrics_of: summary.metrics_of,
        weight_units: summary.ledger.mass.units(),
        seconds: summary.seconds,
        sent_bytes: summary.sent_bytes,
        peak_resident_bytes: summary.peak_resident_bytes,
    }
}
