//! Arguments of the fault tests.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use mingle_lab::campaign::sums::SUMS;
use mingle_protocol::sim::{Profile, UnknownProfile};
use mingle_protocol::{InjectedBug, Robust, TrainingOverlap};

/// Arguments of `fault-test`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FaultTestArgs {
    /// The faults: kill, loss, partition, churn, mixed, rollback, lossy-disk, exact-average, hostile, sums or all; may be given
    /// more than once
    #[arg(long = "profile", value_name = "PROFILE", default_value = "kill")]
    pub(crate) profiles: Vec<Profiles>,
    /// Seeds to run of each profile
    #[arg(long, default_value_t = 100, value_name = "N", conflicts_with = "days")]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    pub(crate) first: u64,
    /// Run the swarm of one seed for so many virtual days instead: kill, loss or partition
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,
    /// Seeds to run at a time; what comes out does not depend on it [default: the cores]
    #[arg(long, value_name = "K", conflicts_with = "days")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Where the runs of failing seeds are written, made short; the folder is made when there are any
    #[arg(long, default_value = "mingle-faults", value_name = "DIR")]
    pub(crate) journals: PathBuf,
    /// Runs to spend on making a failing one shorter
    #[arg(long, default_value_t = 300, value_name = "N")]
    pub(crate) shrink_runs: u32,
    /// Give every node a bug, such as sends-before-writing, to see that the tests notice; only in builds with the feature
    /// injected-bugs
    #[arg(long, value_name = "BUG", conflicts_with = "days")]
    pub(crate) inject: Option<InjectedBug>,
    /// Treatment of a neighbour's ratio that is unusually far from a node's own: off or clip, as with `run`
    #[arg(long, default_value_t, value_name = "WAY", conflicts_with = "days")]
    pub(crate) robust: Robust,
    /// Train the next round while the present one is mixed: off or on, as with `run`
    #[arg(long, default_value_t, value_name = "off|on", conflicts_with = "days")]
    pub(crate) overlap: TrainingOverlap,
}

/// Arguments of `replay`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayArgs {
    /// A journal that `fault-test` wrote
    #[arg(value_name = "JOURNAL")]
    pub(crate) journal: PathBuf,
    /// Print the log of faults and of what nodes report, in order
    #[arg(long, alias = "story")]
    pub(crate) trace: bool,
}

/// One fault profile, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profiles {
    All,
    One(FaultProfile),
}

/// The swarm that faults befall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultProfile {
    /// Nodes that train by push-sum.
    PushSum(Profile),
    /// Members that train over masked sums.
    Sums,
}

impl Profiles {
    /// The profiles named in `chosen`, each once, in the order of naming.
    pub(crate) fn listed(chosen: &[Self]) -> Vec<FaultProfile> {
        let mut profiles = Vec::new();
        for choice in chosen {
            let named = match choice {
                Self::All => Profile::ALL.into_iter().map(FaultProfile::PushSum).chain([FaultProfile::Sums]).collect(),
                Self::One(profile) => vec![*profile],
            };
            let new: Vec<FaultProfile> = named.into_iter().filter(|profile| !profiles.contains(profile)).collect();
            profiles.extend(new);
        }
        profiles
    }
}

impl FromStr for Profiles {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "all" => Ok(Self::All),
            SUMS => Ok(Self::One(FaultProfile::Sums)),
            _ => name.parse().map(|profile| Self::One(FaultProfile::PushSum(profile))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn profiles_are_run_once_each_in_the_order_of_their_naming() {
        let chosen = ["mixed", "kill", "mixed"].map(|name| name.parse().unwrap());
        let [mixed, kill, churn] = [Profile::Mixed, Profile::Kill, Profile::Churn].map(FaultProfile::PushSum);
        assert_eq!(Profiles::listed(&chosen), [mixed, kill]);
        let all = Profiles::listed(&[Profiles::One(churn), Profiles::All]);
        assert_eq!((all.len(), all[0]), (Profile::ALL.len() + 1, churn));
        assert_eq!(Profiles::listed(&["sums".parse().unwrap()]), [FaultProfile::Sums]);
        assert!("storm".parse::<Profiles>().is_err());
    }

    #[test]
    fn the_help_names_every_profile() {
        let command = FaultTestArgs::augment_args(clap::Command::new("fault-test"));
        let argument = command.get_arguments().find(|argument| argument.get_id() == "profiles").unwrap();
        let help = argument.get_help().unwrap().to_string();
        for profile in Profile::ALL {
            assert!(help.contains(profile.name()), "{} is not in: {help}", profile.name());
        }
    }
}
