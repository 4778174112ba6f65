//! `mingle run`: one peer in the foreground, from its key to its trained model.

mod compare_alone;
mod former_start;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use mingle_builtin::data_task::{DataTask, DataTaskOptions, HomeTask};
use mingle_builtin::model_files;
use mingle_builtin::options::{PrivacyOptions, parse_policy};
use mingle_builtin::task_card::Card;
use mingle_builtin::task_file::TaskFile;
use mingle_models::start_threads;
use mingle_peer::error::Context;
use mingle_peer::events::{Event, EventSink};
use mingle_peer::follow::serving::FollowerLimits;
use mingle_peer::membership::{AutomaticPlanning, EndWish, Membership};
use mingle_peer::peer::{GivenPlan, Outcome, Peer, PeerOptions, PeerParts, Purpose};
use mingle_peer::records::Ending;
use mingle_peer::results::{Summary, skipped_most};
use mingle_peer::solving::SumPolicy;
use mingle_peer::stop::StopHandle;
use mingle_peer::task::Assignment;
use mingle_peer::training::{FederatedSettings, PrivacySettings};
use mingle_peer::{Error, ErrorKind, Home, Identity, Result, plan, priority, stop};

use mingle_trainer::{HostOptions, Launcher, RoundsChoice, TrainerHost, TrainerTask};
use mingle_watch::tensorboard::TensorBoardFile;
use tokio::sync::watch;

use crate::arguments;
use crate::cli::{Planning, RunArgs, Switch, multiaddrs};
use crate::config::Remembered;
use crate::out::Stream;
use crate::printer::Printer;
use crate::rounds::{self, SPECTRA};
use crate::signals::{STDIN_ENDED, StopSignals};
use crate::{event_loop, out};
use compare_alone::RequestedComparison;
use former_start::FormerStart;

/// The value of `--trainer` for a trainer that is not started, but connects by itself.
const ATTACH: &str = "attach";

/// Runs the peer.
pub(super) fn execute(arguments: &RunArgs, json: bool) -> Result {
    match first_model(arguments)? {
        None => execute_in(arguments, None, json),
        begin_with => execute_in(&RunArgs { begin_with, ..arguments.clone() }, None, json),
    }
}

/// The model that `mingle init --from` left in the home, where a run is about to begin with it: none in a home that has
/// joined the swarm of another founder, nor where a run has begun, which goes on as it began.
fn first_model(arguments: &RunArgs) -> Result<Option<PathBuf>> {
    let home = Home::at(arguments.home.home.as_deref())?;
    let path = home.first_model();
    let has_another_beginning = arguments.begin_with.is_some() || arguments.continues || arguments.problem.is_some();
    let goes_on = home.records().exists() && !arguments.fresh && arguments.compare_alone != Switch::On;
    if has_another_beginning || goes_on || !path.exists() {
        return Ok(None);
    }
    let Some(membership) = Membership::of(&home)? else { return Ok(Some(path)) };
    let own = Identity::load(&home.identity())?.peer_id();
    Ok(Some(path).filter(|_| membership.swarm.founder().ok() == Some(own)))
}

/// Runs the peer in the swarm of a ticket, or else in that of its home.
pub(super) fn execute_in(arguments: &RunArgs, ticket: Option<Membership>, json: bool) -> Result {
    let started = Instant::now();
    arguments::check(arguments)?;
    let privacy = PrivacyOptions::from(arguments.training.privacy).settings()?;
    let priority = arguments.priority.into();
    let threads = arguments.threads.and_then(|count| NonZeroUsize::new(count.into()));
    start_threads(threads, move || priority::lower(priority))
        .context(ErrorKind::Unexpected, "this peer cannot train")?;
    let home = Home::at(arguments.home.home.as_deref())?;
    let is_built_in = arguments.problem.is_none() && arguments.trainer.is_none();
    let task = is_built_in.then(|| DataTask::begin(task_options(arguments), home.clone())).transpose()?;
    check_beginning(arguments)?;
    let identity = identity_of(&home)?;
    let _lock = home.lock()?;
    let last = HomeTask::of(&home)?;
    let membership = match ticket {
        Some(membership) => Some(membership),
        None => Membership::of(&home)?,
    };
    let end_wish = membership.is_some().then(EndWish::default);
    let (rounds, longer_than) = rounds_choice(arguments, membership.as_ref(), &identity, &home)?;
    let (mut told, mut trainer, mut comparison) = (Vec::new(), None, None);
    let purpose = match (task, &arguments.trainer) {
        (Some(mut task), _) => {
            let is_invited = membership.as_ref().is_some_and(|membership| membership.invite.is_some());
            told = task.settle_by_itself(last, is_invited)?;
            comparison = RequestedComparison::of(arguments, &home, task.trained_as());
            Purpose::Train(Box::new(task))
        }
        (None, Some(_)) => {
            let host = trainer_host(arguments, (rounds, longer_than.is_some()), end_wish.clone(), &home, &identity)?;
            purpose_of_trainer(arguments, trainer.insert(host), privacy)?
        }
        (None, None) => purpose_of_problem(arguments, &home)?,
    };
    let former = FormerStart::of(&home);
    let remember = remember(home.clone(), Remembered::new(arguments.given.options.clone()), trainer.clone());
    let options = options(arguments, longer_than, end_wish.unwrap_or_default())?;
    let extension = trainer.as_ref().map(TrainerHost::extension).transpose()?;
    let (printer, sink) = output(json, board(arguments)?, former.watch(arguments.problem.is_some()))?;
    let peer =
        Peer::new(PeerParts { home, identity, membership, purpose, options, sink, remember, extension, started })?;
    told.into_iter().for_each(|event| peer.tell(event));
    let ended = event_loop::run(async {
        if let Some(host) = &trainer {
            host.connect(&peer);
            launch(arguments, host);
        }
        let (handle, requests) = stop::channel();
        let mut asked = pass_on(StopSignals::listen(arguments.stop_with_stdin)?, handle, trainer);
        let Outcome::Trained { summary, .. } = peer.run(requests).await? else { return Ok(()) };
        let whole = if arguments.leaves { Ok(()) } else { check_whole(&summary) };
        if let Some(comparison) = comparison {
            comparison.execute(*summary, &mut asked, json).await?;
        }
        whole
    });
    finish(ended, former, &printer, json)
}

/// Puts the files of the former start back if this one was refused, and writes what is left of the output.
fn finish(ended: Result, former: FormerStart, printer: &Printer, json: bool) -> Result {
    if let Err(error) = &ended {
        former.put_back_after(error);
    }
    // A remark that cannot be printed is no failure.
    ended.and(printer.finish().or_else(|unwritten| if json { Err(unwritten) } else { Ok(()) }))
}

/// Refuses a run in which this peer skipped most of the rounds as a whole one. Its model is written all the same.
fn check_whole(summary: &Summary) -> Result {
    let Summary { rounds, skipped, .. } = *summary;
    if !skipped_most(rounds, skipped) {
        return Ok(());
    }
    let message = format!("this peer skipped {skipped} of {rounds} rounds, since the others were too far ahead");
    Err(Error::new(ErrorKind::TimedOut, message).hint(
        "model.safetensors is the model of the others: this peer's data have little part in it. A larger number of --rounds, the same for all \
         peers, goes on; `mingle doctor` and `mingle timeline` say why this peer was late",
    ))
}

/// The purpose of a peer with a problem file.
fn purpose_of_problem(arguments: &RunArgs, home: &Home) -> Result<Purpose> {
    let path = arguments.problem.clone().unwrap_or_default();
    Ok(rounds::read(&path, Some(home.root().join(SPECTRA)))?.map_or(Purpose::Solve(path), Purpose::Learn))
}

/// The purpose of a peer whose trainer is another program: in the rounds of a problem file, if there is one.
fn purpose_of_trainer(arguments: &RunArgs, host: &TrainerHost, privacy: Option<PrivacySettings>) -> Result<Purpose> {
    let task = Box::new(TrainerTask::new(host, privacy)?);
    Ok(match federated_settings(arguments)? {
        Some(settings) => Purpose::TrainFederated(task, settings),
        None => Purpose::Train(task),
    })
}

/// The settings of a problem that a trainer trains over sums, if there is one.
fn federated_settings(arguments: &RunArgs) -> Result<Option<FederatedSettings>> {
    let path = arguments.problem.as_deref().filter(|_| arguments.trainer.is_some());
    path.map(mingle_problems::read_for_trainer).transpose().map_err(rounds::explain)
}

/// Notifies the peer and its trainer of requests to stop; returns their count. To be called in the event loop.
fn pass_on(mut signals: StopSignals, peer: StopHandle, trainer: Option<TrainerHost>) -> watch::Receiver<u32> {
    let (asked_to_stop, asked) = watch::channel(0);
    tokio::spawn(async move {
        // The first request stops in good order, the second at once. After the run one is enough, except that the end
        // of standard input leaves the trainer its time with the model.
        loop {
            let reason = signals.next().await;
            asked_to_stop.send_modify(|asked| *asked += 1);
            let is_insisting = *asked_to_stop.borrow() > 1;
            if !peer.stop(reason) && reason != STDIN_ENDED || is_insisting {
                break;
            }
        }
        trainer.iter().for_each(TrainerHost::hurry);
    });
    asked
}

/// Options for the task of a built-in model.
fn task_options(arguments: &RunArgs) -> DataTaskOptions {
    DataTaskOptions {
        training: arguments.training.clone().into(),
        chosen: arguments.given.keys.clone(),
        card: arguments.card.clone(),
        plan: arguments.plan.clone(),
        has_bootstraps: !arguments.bootstrap.is_empty(),
        fresh: arguments.fresh,
        continues: arguments.continues,
        begin_with: arguments.begin_with.clone(),
    }
}

/// Refuses `--continue` with a problem, and `--fresh` with a convex one, which is solved from the beginning each time.
fn check_beginning(arguments: &RunArgs) -> Result {
    let Some(path) = arguments.problem.as_deref() else { return Ok(()) };
    if arguments.continues {
        let message = format!("--continue takes a model along, and {} is a problem", path.display());
        return Err(Error::new(ErrorKind::BadInput, message)
            .hint("leave --continue away: a problem that learns in rounds goes on by itself"));
    }
    if !arguments.fresh || arguments.trainer.is_some() || rounds::read(path, None)?.is_some() {
        return Ok(());
    }
    let message = format!("--fresh gives up what a home has kept, and of {} nothing is kept", path.display());
    Err(Error::new(ErrorKind::BadInput, message)
        .hint("leave --fresh away: a convex problem is solved from the beginning each time"))
}

/// The host to which a trainer program connects.
fn trainer_host(
    arguments: &RunArgs,
    (rounds, is_over): (RoundsChoice, bool),
    end_wish: Option<EndWish>,
    home: &Home,
    identity: &Identity,
) -> Result<TrainerHost> {
    if let Some(path) = arguments.begin_with.as_deref() {
        // Its layout is judged once a trainer is there, which may take minutes.
        model_files::read(path)?;
    }
    TrainerHost::new(HostOptions {
        home: home.clone(),
        peer: identity.peer_id().to_string(),
        rounds,
        fresh: arguments.fresh,
        begins_again: begins_again(arguments, home)? || is_over,
        begin_with: arguments.begin_with.clone(),
        end_wish,
        // A peer that only leaves waits for no trainer.
        tcp: arguments.trainer_tcp.filter(|_| !arguments.leaves),
        needs_every_round: arguments.problem.is_some(),
    })
}

/// The number of rounds: that of a problem file; the swarm's where the user chose none and the swarm has an operator elsewhere. Then also that of
/// the run in the home, where it is over and the swarm may train on.
fn rounds_choice(
    arguments: &RunArgs,
    membership: Option<&Membership>,
    identity: &Identity,
    home: &Home,
) -> Result<(RoundsChoice, Option<Ending>)> {
    if let Some(settings) = federated_settings(arguments)? {
        return Ok((RoundsChoice::Chosen(settings.rounds), None));
    }
    let rounds = arguments.training.rounds;
    if arguments.given.keys.contains("rounds") {
        return Ok((RoundsChoice::Chosen(rounds), None));
    }
    let is_told = membership.is_some_and(|it| it.swarm.role_of(&identity.peer_id()).is_none());
    if !is_told || arguments.leaves {
        return Ok((RoundsChoice::Default(rounds), None));
    }
    let former = Ending::of_latest_run(home)?.filter(|ending| !ending.left);
    Ok((RoundsChoice::OfTheSwarm(rounds), former.filter(|_| !arguments.fresh)))
}

/// Returns `true` if the run in the home is over, and another or a longer one begins with its model.
fn begins_again(arguments: &RunArgs, home: &Home) -> Result<bool> {
    if arguments.leaves || arguments.fresh {
        return Ok(false);
    }
    let former = Ending::of_latest_run(home)?.filter(|ending| !ending.left);
    let more = arguments.given.keys.contains("rounds").then_some(arguments.training.rounds);
    Ok(former.is_some_and(|former| arguments.continues || more.is_some_and(|more| former.goes_on_to(more))))
}

/// Starts the trainer program, if a command is given.
fn launch(arguments: &RunArgs, host: &TrainerHost) {
    let command = arguments.trainer.as_deref().filter(|command| *command != ATTACH && !arguments.leaves);
    command.into_iter().for_each(|command| Launcher::new(command, arguments.trainer_crashes).start(host));
}

/// The options of the peer.
fn options(arguments: &RunArgs, longer_than: Option<Ending>, end_wish: EndWish) -> Result<PeerOptions> {
    let given = |path: &PathBuf| plan::read(path).map(|plan| GivenPlan { plan, origin: path.display().to_string() });
    Ok(PeerOptions {
        listen: multiaddrs(&arguments.listen),
        bootstrap: multiaddrs(&arguments.bootstrap),
        bootstrap_timeout: arguments.bootstrap_timeout,
        mdns: arguments.mdns == Switch::On,
        plan: arguments.plan.as_ref().map(given).transpose()?,
        without: arguments.without.clone(),
        automatic_planning: (arguments.planning == Planning::Auto).then(|| AutomaticPlanning {
            forget_after: arguments.evict_after,
            least_members: arguments.problem.as_ref().map_or(2, |_| SumPolicy::from(arguments.sums).least_of_plan()),
            local_steps: arguments.local_steps,
        }),
        join_timeout: arguments.join_timeout,
        wait: parse_policy(&arguments.wait)?,
        codec: arguments.communication.codec,
        medium: arguments.medium.medium.clone(),
        air_rate: arguments.medium.air_rate,
        slots: arguments.medium.slots,
        deadline: arguments.deadline,
        time_box: arguments.time_box,
        training_deadline: arguments.training_deadline,
        shutdown_timeout: arguments.shutdown_timeout,
        max_norm: arguments.max_norm,
        robust: arguments.communication.robust,
        momentum_across_rounds: arguments.communication.momentum_across_rounds,
        overlap: arguments.communication.overlap,
        keep_best: arguments.keep_best.clone(),
        durability: arguments.durability.into(),
        fresh: arguments.fresh,
        longer_than,
        end_wish,
        continues: arguments.continues,
        leaves: arguments.leaves,
        sums: arguments.sums.into(),
        evaluate_every: evaluate_every(arguments),
        priority: arguments.priority.into(),
        timeline: arguments.timeline == Switch::On,
        followers: FollowerLimits {
            most: arguments.followers.into(),
            bytes_per_second: 1_000_000 * u64::from(arguments.follower_rate),
        },
        http: arguments.http,
    })
}

/// The evaluation interval. The rounds of another program's training are longer than those of the built-in models.
fn evaluate_every(arguments: &RunArgs) -> u64 {
    let is_usual = arguments.trainer.is_some() && !arguments.given.keys.contains("evaluate_every");
    if is_usual { PeerOptions::default().evaluate_every } else { arguments.training.evaluate_every }
}

/// The event file for TensorBoard, if requested.
fn board(arguments: &RunArgs) -> Result<Option<TensorBoardFile>> {
    arguments.tensorboard.as_deref().filter(|_| !arguments.leaves).map(TensorBoardFile::create).transpose()
}

/// The output of events beside the file in the home: with `json` lines of JSON, else sentences.
/// `watch` sees each event first.
fn output(
    json: bool,
    mut board: Option<TensorBoardFile>,
    mut watch: impl FnMut(&Event) + Send + 'static,
) -> Result<(Printer, EventSink)> {
    let printer = Printer::start(if json { Stream::Output } else { Stream::Remarks })?;
    let lines = printer.clone();
    let sink: EventSink = Box::new(move |event, line| {
        watch(event);
        if let Some(Err(error)) = board.as_mut().map(|board| board.note(event)) {
            out::remark(format_args!("warning    nothing more is written for TensorBoard: {error}"));
            board = None;
        }
        if event.is_said() && json {
            lines.print(line.to_owned(), !event.is_kept());
        } else if event.is_said() && event.is_kept() {
            lines.print(event.sentence(), false);
        }
    });
    Ok((printer, sink))
}

/// Records the task and the options for the next start in this home.
fn remember(
    home: Home,
    options: Remembered,
    trainer: Option<TrainerHost>,
) -> Box<dyn FnMut(&Assignment) -> Result + Send> {
    Box::new(move |assignment| {
        if let Some(trainer) = &trainer {
            trainer.remember_task()?;
        } else if let Assignment::Train(card) = assignment
            && let Some(card) = Card::decode(card)
        {
            TaskFile::write(&card, &home)?;
        }
        options.write(&home)
    })
}

/// The key of this peer. It is created by `init` and `join`, not here: a new one would be in no plan.
fn identity_of(home: &Home) -> Result<Identity> {
    if home.identity().exists() {
        return Identity::load(&home.identity());
    }
    let root = home.root().display();
    Err(Error::new(ErrorKind::BadInput, format!("there is no peer in {root}: it has no key, so no plan names it"))
        .hint(format!("join a swarm with a ticket: mingle join TICKET --home {root}; or make a key with `mingle init --home {root}`, and bind it: mingle plan bind PLAN --peer NODE=PEERID")))
}
