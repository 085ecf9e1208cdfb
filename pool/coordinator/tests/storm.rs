//! Whatever happens to workers and messages, the text is that of one machine.

mod cluster;

use anygpu_pool::{ChainState, Config, End, Event};
use cluster::{Cluster, model, offer, request};
use rand::RngExt;

fn config() -> Config {
    let quick = Config::new(model());
    Config { snapshot: 16, chunk: 8, patience: 50_000, give_up: 2_000_000, silence: 5_000_000, replan: 20_000, ..quick }
}

/// Kills, freezes, losses of messages, restarts and cancelled requests for a while, then peace until all have ended.
fn storm(seed: u64, config: Config) -> anygpu_pool::Counts {
    let mut cluster = Cluster::new(config.clone(), seed);
    for id in 1..=8 {
        cluster.add(id, offer(2 + id % 2));
    }
    let mut cancelled = Vec::new();
    for session in 1..=30 {
        let (prompt, most) = (cluster.chance.random_range(1..40), cluster.chance.random_range(1..120));
        cluster.ask(request(session, prompt, most));
        cluster.run(cluster.now + 100_000);
        cluster.loss = if cluster.chance.random_bool(0.2) { 0.02 } else { 0.0 };
        let id = cluster.chance.random_range(1..=8);
        match cluster.chance.random_range(0..10) {
            0..4 => {
                let back = cluster.chance.random_range(50_000..1_000_000);
                cluster.kill(id, Some(back));
            }
            4..6 => {
                let time = cluster.chance.random_range(100_000..3_000_000);
                cluster.freeze(id, time);
            }
            6 => {
                cluster.tell(Event::Cancel(session));
                cancelled.push(session);
            }
            7 if session % 3 == 0 => cluster.restart(config.clone()),
            8 => {
                let visible = !cluster.nodes[&id].visible;
                cluster.see(id, visible);
            }
            _ => {}
        }
    }
    cluster.loss = 0.0;
    cluster.run(cluster.now + 120_000_000);
    cluster.is_exact();
    assert!(cluster.ended.iter().all(|(id, end)| *end != End::Cancelled || cancelled.contains(id)));
    assert_eq!(cluster.coordinator.load(), (0, 0));
    cluster.coordinator.counts()
}

#[test]
fn texts_survive_storms() {
    let mut sum = anygpu_pool::Counts::default();
    for seed in 0..300 {
        let counts = storm(seed, config());
        sum.promoted += counts.promoted;
        sum.recruited += counts.recruited;
        sum.replayed += counts.replayed;
        sum.given_up += counts.given_up;
        sum.again += counts.again;
    }
    // The storms were such: all ways to mend were gone.
    assert!(sum.promoted > 100 && sum.recruited > 1000 && sum.replayed > 1000, "{sum:?}");
    assert!(sum.given_up > 0 && sum.again > 100, "{sum:?}");
}

#[test]
fn one_seed_gives_one_storm() {
    assert_eq!(storm(7, config()), storm(7, config()));
}

/// A cluster of six with one chain that is up, and its sessions under way.
fn under_way() -> Cluster {
    let mut cluster = Cluster::new(config(), 1);
    (1..=6).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(500_000);
    cluster.ask(request(1, 20, 60));
    cluster.ask(request(2, 5, 80));
    cluster.run(700_000);
    assert!(cluster.said.len() == 2 && cluster.ended.is_empty(), "{:?}", cluster.said);
    cluster
}

fn stages(cluster: &Cluster) -> Vec<u64> {
    let (_, state, slots, _) = cluster.coordinator.chains().next().expect("a chain");
    assert_eq!(state, ChainState::Up);
    slots.iter().filter_map(|slot| slot.worker).collect()
}

#[test]
fn stages_have_different_rows_of_a_prompt_at_once() {
    let first = |chunk| {
        let mut cluster = Cluster::new(Config { chunk, ..config() }, 3);
        (1..=3).for_each(|id| cluster.add(id, offer(2)));
        cluster.run(500_000);
        let begun = cluster.now;
        cluster.ask(request(1, 96, 2));
        while cluster.said.is_empty() {
            cluster.run(cluster.now + 100);
        }
        let time = cluster.now - begun;
        cluster.run(60_000_000);
        cluster.is_exact();
        assert_eq!(cluster.coordinator.counts().again, 0, "nothing was sent again");
        time
    };
    // Here a step takes as long for many rows as for few. One after the other, twelve steps would take twelve times as long
    // as one; as it is, they take the time of fourteen stages instead of three.
    let (whole, parts) = (first(96), first(8));
    assert!(parts > 3 * whole && parts < 8 * whole, "{whole} us in one step, {parts} us in twelve");
}

#[test]
fn each_stage_may_be_lost() {
    for stage in 0..3 {
        let mut cluster = under_way();
        let lost = stages(&cluster)[stage];
        let said = cluster.said[&1].len();
        cluster.kill(lost, None);
        cluster.run(cluster.now + 100_000);
        assert_eq!(cluster.coordinator.up(), 1, "a spare has taken over");
        assert!(cluster.said[&1].len() > said, "and the text goes on within 0.1 s");
        assert_eq!(cluster.coordinator.counts().promoted, 1);
        cluster.run(60_000_000);
        cluster.is_exact();
        cluster.is_forgotten();
    }
}

#[test]
fn neighbours_may_be_lost_at_once() {
    for pair in [[0, 1], [1, 2], [0, 2]] {
        let mut cluster = under_way();
        let stages = stages(&cluster);
        pair.iter().for_each(|stage| cluster.kill(stages[*stage], Some(1_000_000)));
        cluster.run(60_000_000);
        cluster.is_exact();
        assert_eq!(cluster.coordinator.counts().promoted, 2);
    }
}

#[test]
fn a_frozen_worker_is_found_by_its_deadline() {
    let mut cluster = under_way();
    let frozen = stages(&cluster)[1];
    cluster.freeze(frozen, 20_000_000);
    cluster.run(cluster.now + 1_000_000);
    assert_eq!(cluster.coordinator.worker(frozen), anygpu_pool::State::Suspect);
    assert_eq!(cluster.coordinator.up(), 1);
    cluster.run(60_000_000);
    cluster.is_exact();
}

/// Three that are all needed.
fn without_spares() -> Cluster {
    let mut cluster = Cluster::new(Config::new(model()), 1);
    (1..=3).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(500_000);
    cluster.ask(request(1, 20, 400));
    cluster.run(700_000);
    assert!(cluster.said.len() == 1 && cluster.ended.is_empty(), "{:?}", cluster.said);
    cluster
}

#[test]
fn who_is_slow_and_speaks_is_not_lost() {
    for stage in 0..3 {
        let mut cluster = without_spares();
        let slow = stages(&cluster)[stage];
        // A program is compiled in the middle of a text.
        cluster.nodes.get_mut(&slow).expect("a node").busy = cluster.now + 8_000_000;
        cluster.run(cluster.now + 20_000_000);
        let counts = cluster.coordinator.counts();
        assert_eq!((counts.lost, counts.recruited, counts.given_up), (0, 3, 0), "stage {stage}");
        assert_eq!(cluster.ended.get(&1), Some(&End::Length));
        cluster.is_exact();
    }
}

#[test]
fn who_does_nothing_but_speak_is_lost_in_the_end() {
    let mut cluster = without_spares();
    let stuck = stages(&cluster)[1];
    cluster.nodes.get_mut(&stuck).expect("a node").busy = u64::MAX / 2;
    cluster.run(cluster.now + 60_000_000);
    assert!(cluster.coordinator.counts().lost > 0);
}

#[test]
fn who_prepares_for_long_and_speaks_is_waited_for() {
    let mut cluster = without_spares();
    let lost = stages(&cluster)[1];
    cluster.nodes.get_mut(&lost).expect("a node").compile = 70_000_000;
    cluster.kill(lost, Some(100_000));
    cluster.run(cluster.now + 100_000_000);
    let counts = cluster.coordinator.counts();
    assert_eq!((counts.lost, counts.recruited, counts.given_up), (1, 4, 0));
    cluster.is_exact();
}

#[test]
fn a_break_of_the_coordinators_own_connection_loses_nobody() {
    // Workers are back after it, one after the other; one of them was preparing.
    let mut cluster = under_way();
    cluster.add(7, offer(2));
    cluster.nodes.get_mut(&7).expect("a node").compile = 1_000_000;
    cluster.run(cluster.now + 110_000);
    assert_eq!(cluster.coordinator.worker(7), anygpu_pool::State::Fetching);
    let before = stages(&cluster);
    cluster.tell(Event::Cut);
    (1..=7).for_each(|id| cluster.freeze(id, 9_000_000 + id * 300_000));
    cluster.run(cluster.now + 8_000_000);
    cluster.tell(Event::Returned);
    cluster.ask(request(3, 5, 40));
    cluster.run(cluster.now + 6_000_000);
    assert_eq!((cluster.coordinator.counts().lost, stages(&cluster)), (0, before));
    assert_eq!(cluster.coordinator.worker(7), anygpu_pool::State::Spare);
    cluster.run(60_000_000);
    cluster.is_exact();
    assert_eq!(cluster.coordinator.counts().recruited, 3);
}

#[test]
fn who_does_not_follow_after_a_break_is_lost() {
    let mut cluster = under_way();
    let lost = stages(&cluster)[1];
    cluster.tell(Event::Cut);
    cluster.freeze(lost, 100_000_000);
    cluster.run(cluster.now + 1_000_000);
    cluster.tell(Event::Returned);
    cluster.run(cluster.now + 7_000_000);
    assert_eq!((cluster.coordinator.counts().lost, cluster.coordinator.worker(lost)), (1, anygpu_pool::State::Suspect));
    cluster.run(60_000_000);
    cluster.is_exact();
}

#[test]
fn a_restart_goes_on_where_texts_were() {
    let mut cluster = under_way();
    let before = stages(&cluster);
    cluster.restart(config());
    cluster.run(cluster.now + 1_000_000);
    assert_eq!(stages(&cluster), before, "workers have what they had");
    cluster.run(60_000_000);
    cluster.is_exact();
}

#[test]
fn a_snapshot_saves_rows() {
    let lose = |snapshot| {
        let mut cluster = Cluster::new(Config { snapshot, ..config() }, 3);
        (1..=6).for_each(|id| cluster.add(id, offer(2)));
        cluster.ask(request(1, 20, 300));
        cluster.run(1_000_000);
        let lost = stages(&cluster)[1];
        cluster.kill(lost, None);
        cluster.run(60_000_000);
        cluster.is_exact();
        cluster.coordinator.counts().replayed
    };
    let (with, without) = (lose(16), lose(0));
    assert!(with <= 17 && without > 100, "{with} rows replayed with snapshots, {without} without");
}

#[test]
fn a_better_chain_takes_over_without_a_stop() {
    let improving = Config { improve: 1_000_000, ..config() };
    let mut cluster = Cluster::new(improving, 5);
    (1..=3).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(500_000);
    cluster.ask(request(1, 5, 400));
    cluster.run(900_000);
    let before = stages(&cluster);
    // One that holds all of it, at a third of the time.
    cluster.add(9, anygpu_pool::Offer { block: 300, ..offer(7) });
    cluster.run(4_000_000);
    assert_eq!(cluster.coordinator.counts().replaced, 1);
    cluster.ask(request(2, 5, 50));
    cluster.run(60_000_000);
    cluster.is_exact();
    assert_eq!(stages(&cluster), [9], "{before:?} retired when its session had ended");
    assert_eq!(cluster.coordinator.counts().replayed, 0);
}

#[test]
fn a_faster_spare_takes_the_place_of_a_slow_stage() {
    let mut cluster = Cluster::new(Config { improve: 1_000_000, ..config() }, 5);
    (1..=3).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(500_000);
    cluster.ask(request(1, 5, 400));
    cluster.run(900_000);
    let before = stages(&cluster);
    cluster.add(9, anygpu_pool::Offer { block: 10, ..offer(2) });
    cluster.run(3_000_000);
    let after = stages(&cluster);
    let slow: Vec<_> = before.iter().filter(|id| !after.contains(id)).copied().collect();
    assert!(slow.len() == 1 && after.contains(&9), "{before:?}, {after:?}");
    assert_eq!(cluster.coordinator.worker(slow[0]), anygpu_pool::State::Spare);
    let counts = cluster.coordinator.counts();
    assert_eq!((counts.exchanged, counts.replaced, counts.lost), (1, 0, 0));
    cluster.run(60_000_000);
    cluster.is_exact();
}

#[test]
fn a_liar_is_banned_and_an_honest_worker_is_not() {
    for liar in ["stage", "spare"] {
        let mut cluster = Cluster::new(Config { check: 1.0, ..config() }, 11);
        (1..=9).for_each(|id| cluster.add(id, offer(2)));
        cluster.run(500_000);
        let stages = stages(&cluster);
        let who = if liar == "stage" { stages[1] } else { (1..=9).find(|id| !stages.contains(id)).unwrap() };
        cluster.nodes.get_mut(&who).expect("a node").liar = true;
        (1..=20).for_each(|session| cluster.ask(request(session, 5, 60)));
        cluster.run(60_000_000);
        assert_eq!(cluster.coordinator.facts().banned, [who], "{liar}");
        let untrusted = cluster.ended.values().filter(|end| **end == End::Untrusted).count();
        assert_eq!(untrusted > 0, liar == "stage", "what a liar had part in is told");
        cluster.tell(Event::Connected(who));
        assert_eq!(cluster.coordinator.worker(who), anygpu_pool::State::Gone);
    }
}

#[test]
fn a_dispute_is_settled_when_somebody_comes_who_can() {
    let mut cluster = Cluster::new(Config { check: 1.0, ..config() }, 3);
    // One spare a stage: nobody to settle.
    (1..=6).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(500_000);
    let who = stages(&cluster)[1];
    cluster.nodes.get_mut(&who).expect("a node").liar = true;
    (1..=20).for_each(|session| cluster.ask(request(session, 5, 60)));
    cluster.run(20_000_000);
    let counts = cluster.coordinator.counts();
    assert!(counts.disputed > 0 && counts.banned == 0, "{counts:?}");
    cluster.is_exact();
    (7..=9).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(30_000_000);
    assert_eq!(cluster.coordinator.facts().banned, [who]);
}

#[test]
fn checks_survive_storms_and_ban_nobody_honest() {
    for seed in 0..40 {
        let counts = storm(seed, Config { check: 1.0, ..config() });
        assert!(counts.banned == 0 && counts.disputed == 0, "{counts:?}");
    }
}

#[test]
fn requests_that_cannot_be_taken_are_refused() {
    let mut cluster = Cluster::new(Config { queue: 1, ..config() }, 1);
    cluster.ask(request(1, 0, 5));
    cluster.ask(request(2, 1, 5));
    cluster.ask(request(3, 1, 5));
    assert_eq!(cluster.ended.get(&1), Some(&End::Refused));
    assert_eq!(cluster.ended.get(&3), Some(&End::Refused));
    (1..=3).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(5_000_000);
    assert_eq!(cluster.ended.get(&2), Some(&End::Length));
}
