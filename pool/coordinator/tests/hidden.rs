//! Pages that are hidden serve as long as nobody else can, and no longer.

mod cluster;

use anygpu_pool::{ChainState, Config, State};
use cluster::{Cluster, model, offer, request};

/// So many workers, a chain of three that is up, and a text under way.
fn under_way(workers: u64) -> Cluster {
    let mut cluster = Cluster::new(Config { replan: 20_000, ..Config::new(model()) }, 1);
    (1..=workers).for_each(|id| cluster.add(id, offer(2)));
    cluster.run(500_000);
    cluster.ask(request(1, 20, 400));
    cluster.run(700_000);
    assert!(cluster.said.len() == 1 && cluster.ended.is_empty(), "{:?}", cluster.said);
    cluster
}

fn stages(cluster: &Cluster) -> Vec<u64> {
    let (_, state, slots, _) = cluster.coordinator.chains().next().expect("a chain");
    assert_eq!(state, ChainState::Up);
    slots.iter().filter_map(|slot| slot.worker).collect()
}

#[test]
fn a_hidden_page_changes_places_with_a_spare() {
    for stage in 0..3 {
        let mut cluster = under_way(6);
        let hidden = stages(&cluster)[stage];
        let said = cluster.said[&1].len();
        cluster.see(hidden, false);
        cluster.run(cluster.now + 100_000);
        assert!(!stages(&cluster).contains(&hidden), "a spare has taken over");
        assert!(cluster.said[&1].len() > said, "and the text goes on within 0.1 s");
        assert_eq!(cluster.coordinator.worker(hidden), State::Spare);
        let counts = cluster.coordinator.counts();
        assert_eq!((counts.exchanged, counts.promoted, counts.lost, counts.recruited), (1, 0, 0, 3));
        cluster.run(60_000_000);
        cluster.is_exact();
        cluster.is_forgotten();
    }
}

#[test]
fn a_hidden_page_is_relieved_when_somebody_comes_or_is_seen_again() {
    let mut cluster = under_way(3);
    let hidden = stages(&cluster)[1];
    cluster.see(hidden, false);
    cluster.run(cluster.now + 100_000);
    assert!(stages(&cluster).contains(&hidden), "nobody else is there");
    // All of them: a spare stands by for what is covered least.
    (4..=6).for_each(|id| cluster.add(id, offer(2)));
    (4..=6).for_each(|id| cluster.see(id, false));
    cluster.run(cluster.now + 500_000);
    assert!(stages(&cluster).contains(&hidden), "who stands by is hidden as well");
    (4..=6).for_each(|id| cluster.see(id, true));
    cluster.run(cluster.now + 500_000);
    assert!(!stages(&cluster).contains(&hidden), "{hidden} still serves");
    assert_eq!(cluster.coordinator.counts().lost, 0);
    cluster.run(60_000_000);
    cluster.is_exact();
}

#[test]
fn hidden_pages_are_planned_with_only_where_it_takes_them() {
    let mut cluster = Cluster::new(Config::new(model()), 1);
    (1..=6).for_each(|id| cluster.add(id, offer(2)));
    [1, 2, 3].iter().for_each(|id| cluster.see(*id, false));
    cluster.run(500_000);
    let mut seen = stages(&cluster);
    seen.sort_unstable();
    assert_eq!(seen, [4, 5, 6]);
    let mut cluster = Cluster::new(Config::new(model()), 1);
    (1..=3).for_each(|id| cluster.add(id, offer(2)));
    cluster.see(2, false);
    cluster.run(500_000);
    assert_eq!(stages(&cluster).len(), 3, "there is no chain without it");
}
