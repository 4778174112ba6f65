//! Members that attack inside the bounds: the weight and pace that sound nodes keep.

use std::collections::BTreeSet;

use mingle_protocol::sim::{Fault, Misconduct, Profile, Scenario, SimError, SimulatedSwarm, SwarmConfig, run_scenario};
use mingle_protocol::{Durability, InjectedBug, NodeId, Schedule, WaitPolicy};

use crate::support::*;

/// The seeds of `hostile` whose members attack inside the bounds.
fn sieges(seeds: u64) -> impl Iterator<Item = u64> {
    (0..seeds).map(|k| 2 * k + 1)
}

/// The attacks in a scenario.
fn attacks(scenario: &Scenario) -> BTreeSet<Misconduct> {
    let attack = |(_, fault): &(_, Fault)| if let Fault::Besiege(_, attack) = fault { Some(*attack) } else { None };
    scenario.faults.iter().filter_map(attack).collect()
}

#[test]
fn beside_fewer_than_a_third_of_attackers_sound_nodes_keep_weight_and_pace_and_are_exact_afterwards() {
    let mut seen = BTreeSet::new();
    let mut policies = BTreeSet::new();
    let mut reversible = BTreeSet::new();
    for seed in sieges(40) {
        let scenario = Scenario::new(Profile::Hostile, seed);
        seen.extend(attacks(&scenario));
        policies.insert(format!("{:?}", scenario.config.policy));
        reversible.insert(scenario.config.schedule.is_reversible());
        assert_eq!(run_scenario(Profile::Hostile, seed, scenario).failure, None, "seed {seed}");
    }
    assert_eq!(seen, Misconduct::ALL.into(), "the seeds are to show every attack");
    assert_eq!((policies.len(), reversible.len()), (3, 2), "{policies:?}, reversible {reversible:?}");
}

#[test]
fn sound_nodes_keep_weight_and_pace_in_sieges_that_once_cost_them_either() {
    // Nodes that gave away in one step of a period what they had for the next; swarms that claims of the end split in two;
    // nodes that waited for each other's permits, since made-up weight had them refuse each other's parcels.
    for seed in [500_109, 512_323, 500_033, 510_207, 511_025, 512_433, 512_235] {
        let scenario = Scenario::new(Profile::Hostile, seed);
        assert_eq!(run_scenario(Profile::Hostile, seed, scenario).failure, None, "seed {seed}");
    }
}

/// Checks that seeds keep to the property, and that their plans and attacks are those that the test names.
fn assert_kept(seeds: &[(u64, Misconduct)], is_wanted: fn(&Schedule) -> bool) {
    for &(seed, attack) in seeds {
        let scenario = Scenario::new(Profile::Hostile, seed);
        assert!(is_wanted(&scenario.config.schedule) && attacks(&scenario).contains(&attack), "seed {seed}");
        assert_eq!(run_scenario(Profile::Hostile, seed, scenario).failure, None, "seed {seed}, {attack}");
    }
}

#[test]
fn in_trees_of_exact_averages_sound_nodes_keep_weight_and_pace_whatever_the_attack() {
    // Nodes that went through rounds ahead of a late parent and were late for all others in turn; nodes that followed a
    // leaf's claim to different rounds; branches full of made-up weight; branches without weight that waited for it; a root
    // that had all weight, and waited sixteen rounds for a permit from nodes that had none.
    let seeds = [
        (511_695, Misconduct::Take),
        (510_569, Misconduct::GiveTenth),
        (510_571, Misconduct::TakeByTurns),
        (512_467, Misconduct::PullNorm),
        (510_787, Misconduct::ClaimEnd),
        (511_645, Misconduct::ClaimEnd),
        (511_555, Misconduct::InflateWeight),
        (512_101, Misconduct::InflateWeight),
        (2_000_037, Misconduct::InflateWeight),
    ];
    assert_kept(&seeds, Schedule::hands_ratios_down);
}

#[test]
fn where_links_go_both_ways_three_that_take_at_once_leave_nodes_half_of_their_weight() {
    // Eleven neighbours, messages that are under way for more than a round, and one in ten lost: what three may be ahead is
    // gone before anything is noticed.
    assert_kept(&[(2_008_421, Misconduct::Take)], Schedule::is_reversible);
}

#[test]
fn where_links_go_one_way_nodes_that_are_fed_by_starved_neighbours_keep_a_quarter() {
    // Neighbours that came to rest with nearly half of their weight, and a node that gets everything from one neighbour.
    let seeds = [(511_373, Misconduct::Take), (512_495, Misconduct::Take), (513_639, Misconduct::Take)];
    assert_kept(&seeds, |schedule| !schedule.is_reversible());
}

#[test]
fn where_links_go_one_way_nodes_keep_a_quarter_after_steps_that_usually_leave_them_little() {
    // Sources that stop at once after a node gave as planned.
    let seeds = [(753, Misconduct::Take), (801_757, Misconduct::GiveTenth), (900_091, Misconduct::Take)];
    assert_kept(&seeds, |schedule| !schedule.is_reversible());
}

#[test]
fn nodes_that_do_not_train_keep_their_pace_where_a_step_brings_them_nothing() {
    // A step's only sources are short of permits, refuse what they get or give nothing: it took a deadline in each round.
    let seeds = [(510_521, Misconduct::Take), (900_535, Misconduct::InflateWeight), (802_559, Misconduct::PullNorm)];
    assert_kept(&seeds, |schedule| !schedule.is_reversible() && schedule.local_steps() == 0);
}

#[test]
fn nodes_beside_one_that_claims_the_end_finish_more_rounds_than_they_skip() {
    let seeds = [(800_027, Misconduct::ClaimEnd), (1_003_333, Misconduct::ClaimEnd)];
    assert_kept(&seeds, Schedule::is_reversible);
}

#[test]
fn where_all_wait_for_all_one_that_has_skipped_steps_takes_what_those_behind_send() {
    // It waited for parcels of its own step from a node whose window was full of earlier ones, a deadline in each round. In the
    // second swarm nodes acknowledge what their records hold.
    let seeds = [(1_004_409, Misconduct::ClaimEnd), (2_007_593, Misconduct::PullNorm)];
    assert_kept(&seeds, |schedule| !schedule.is_reversible());
}

#[test]
fn what_nodes_learnt_stays_whole_after_members_pulled_their_models_to_the_largest_norm() {
    // Rounding of parcels leads models beyond it, to one node what it takes from another; the steps of each took the excess away.
    // In the last one a node with little weight began the next plan far beyond it.
    let seeds = [800_129, 801_857, 801_903, 802_139, 1_008_977].map(|seed| (seed, Misconduct::PullNorm));
    assert_kept(&seeds, |_| true);
}

#[test]
fn a_plan_begins_without_the_model_of_a_donor_that_is_beyond_the_largest_norm() {
    assert_kept(&[(510_155, Misconduct::PullNorm)], Schedule::is_reversible);
}

#[test]
fn a_member_at_the_end_of_a_branch_brings_no_weight_into_the_swarm_that_it_made_up() {
    const NODES: u32 = 5;
    let attacker = NodeId(NODES - 1);
    // A star: in a plan without branches the others hold many times what all brought, until a plan without the member.
    let config = averaging(linked(&[&[1, 2, 3, 4], &[0], &[0], &[0], &[0]]), NODES, 100_000);
    let mut swarm = SimulatedSwarm::new(SwarmConfig { durability: Durability::On, ..config }).unwrap();
    swarm.at(seconds(2), Fault::Besiege(attacker, Misconduct::InflateWeight));
    let mut most: f64 = 0.0;
    for second in 3..20 {
        swarm.run_until(seconds(second)).unwrap();
        let others = ids(NODES).filter(|id| *id != attacker);
        most = most.max(others.map(|id| swarm.node(id).unwrap().w()).sum());
    }
    // Parcels under way are not counted.
    assert!(most <= f64::from(NODES) && most > 1.0, "{most} of {NODES}");
}

/// The failures of runs with a bug in which members only make these attacks.
fn failures(bug: InjectedBug, wanted: &[Misconduct]) -> Vec<SimError> {
    let is_wanted = |scenario: &Scenario| {
        scenario.config.policy == WaitPolicy::Sync && attacks(scenario).iter().all(|attack| wanted.contains(attack))
    };
    let scenarios = sieges(100).map(|seed| (seed, Scenario::new(Profile::Hostile, seed)));
    let scenarios = scenarios.filter(|(_, scenario)| is_wanted(scenario)).take(6);
    let with_bug = |(seed, mut scenario): (u64, Scenario)| {
        scenario.config.injected_bug = Some(bug);
        run_scenario(Profile::Hostile, seed, scenario).failure
    };
    scenarios.filter_map(with_bug).collect()
}

#[test]
fn nodes_that_give_without_credit_are_drained_by_members_that_take() {
    let failures = failures(InjectedBug::GivesWithoutCredit, &[Misconduct::Take, Misconduct::GiveTenth]);
    assert!(failures.iter().any(|failure| matches!(failure, SimError::Drained { .. })), "{failures:?}");
}

#[test]
fn nodes_that_believe_anyone_are_led_astray_by_members_that_claim_the_end() {
    let failures = failures(InjectedBug::BelievesAnyone, &[Misconduct::ClaimEnd]);
    let is_astray = |failure: &SimError| {
        matches!(failure, SimError::LedAstray { .. } | SimError::Misled { .. } | SimError::EndedBySiege { .. })
    };
    assert!(!failures.is_empty() && failures.iter().all(is_astray), "{failures:?}");
}
