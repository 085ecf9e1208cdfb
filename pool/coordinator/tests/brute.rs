//! Plans are held to what trying everything finds.

use anygpu_pool::plan::{Aim, Chain, Model, Worker, busiest, deal, fastest, states};
use anygpu_pool_proto::Range;
use proptest::prelude::*;

const AIM: Aim = Aim { recovery: 0.5, token: 0.1, tokens: 1000.0 };

/// A choice for each worker: its blocks, whether it has the embedding, whether the head.
type Choice = Vec<(u32, bool, bool)>;

/// All choices that are chains of the model.
fn all(model: &Model, workers: &[Worker]) -> Vec<Choice> {
    let mut all: Vec<Choice> = vec![Vec::new()];
    for worker in workers {
        let mut next = Vec::new();
        for choice in &all {
            for (blocks, ends) in (0..=model.blocks).flat_map(|blocks| (0..4).map(move |ends| (blocks, ends))) {
                let (embedding, head) = (ends & 1 > 0, ends & 2 > 0);
                let range = Range { first: 0, end: blocks, embedding, head };
                if model.bytes(&range) <= worker.memory && (worker.ends || ends == 0) {
                    next.push([&choice[..], &[(blocks, embedding, head)]].concat());
                }
            }
        }
        all = next;
    }
    all.retain(|choice| {
        let one = |end: fn(&(u32, bool, bool)) -> bool| choice.iter().filter(|it| end(it)).count() == 1;
        let used = choice.iter().filter(|it| used(it)).count();
        let both = choice.iter().any(|it| it.1 && it.2);
        choice.iter().map(|it| it.0).sum::<u32>() == model.blocks
            && one(|it| it.1)
            && one(|it| it.2)
            && (!both || used == 1)
    });
    all
}

fn used(it: &(u32, bool, bool)) -> bool {
    it.0 > 0 || it.1 || it.2
}

fn time(model: &Model, worker: &Worker, it: &(u32, bool, bool)) -> f64 {
    worker.hop + worker.block * (f64::from(it.0) + if it.2 { model.head_blocks } else { 0.0 })
}

fn cost(model: &Model, workers: &[Worker], choice: &Choice) -> f64 {
    let one = |(worker, it): (&Worker, &(u32, bool, bool))| {
        let bytes = model.weights(&Range { first: 0, end: it.0, embedding: it.1, head: it.2 }) as f64;
        time(model, worker, it) + worker.hazard * AIM.token * AIM.recovery + bytes / worker.bandwidth / AIM.tokens
    };
    workers.iter().zip(choice).filter(|(_, it)| used(it)).map(one).sum()
}

fn slowest(model: &Model, workers: &[Worker], choice: &Choice) -> f64 {
    let times = workers.iter().zip(choice).filter(|(_, it)| used(it)).map(|(worker, it)| time(model, worker, it));
    times.fold(0.0, f64::max)
}

/// A chain has each block once, in order, the embedding first and the head last, and nobody more than fits.
fn is_whole(model: &Model, workers: &[Worker], chain: &Chain) {
    let mut next = 0;
    for (index, stage) in chain.stages.iter().enumerate() {
        let worker = workers.iter().find(|worker| worker.id == stage.worker).expect("a worker that was given");
        assert_eq!(stage.range.first, next);
        assert_eq!(stage.range.embedding, index == 0);
        assert_eq!(stage.range.head, index + 1 == chain.stages.len());
        assert!(model.bytes(&stage.range) <= worker.memory);
        assert_eq!(chain.stages.iter().filter(|other| other.worker == stage.worker).count(), 1);
        next = stage.range.end;
    }
    assert_eq!(next, model.blocks);
}

fn worker(blocks: u32) -> impl Strategy<Value = Worker> {
    (0..=u64::from(blocks) + 3, 1..20u32, 0..20u32, 0..5u32, any::<bool>()).prop_map(
        |(fits, block, hop, hazard, ends)| Worker {
            id: 0,
            memory: fits * 100,
            block: f64::from(block) * 1e-3,
            hop: f64::from(hop) * 1e-3,
            hazard: f64::from(hazard) * 0.05,
            bandwidth: 1e4,
            cached: None,
            ends,
        },
    )
}

fn pool() -> impl Strategy<Value = (Model, Vec<Worker>)> {
    (1..=4u32).prop_flat_map(|blocks| {
        let model = (0..200u64, 0..200u64, 0..3u32).prop_map(move |(embedding_bytes, head_bytes, head)| Model {
            blocks,
            block_bytes: 70,
            block_states: 30,
            embedding_bytes,
            head_bytes,
            head_blocks: f64::from(head),
        });
        let workers = prop::collection::vec(worker(blocks), 1..=3).prop_map(|mut workers| {
            workers.iter_mut().zip(1..).for_each(|(worker, id)| worker.id = id);
            workers
        });
        (model, workers)
    })
}

proptest! {
    #[test]
    fn no_chain_costs_less((model, workers) in pool()) {
        let all = all(&model, &workers);
        let chain = fastest(&model, &workers, &AIM);
        prop_assert_eq!(chain.is_some(), !all.is_empty());
        if let Some(chain) = chain {
            is_whole(&model, &workers, &chain);
            let least = all.iter().map(|choice| cost(&model, &workers, choice)).fold(f64::INFINITY, f64::min);
            prop_assert!((chain.cost - least).abs() < 1e-12, "{} where {least} is possible", chain.cost);
        }
    }

    #[test]
    fn no_chain_has_a_faster_slowest_stage((model, workers) in pool()) {
        let all = all(&model, &workers);
        let chain = busiest(&model, &workers, &AIM);
        prop_assert_eq!(chain.is_some(), !all.is_empty());
        if let Some(chain) = chain {
            is_whole(&model, &workers, &chain);
            let least = all.iter().map(|choice| slowest(&model, &workers, choice)).fold(f64::INFINITY, f64::min);
            prop_assert!((chain.slowest - least).abs() < 1e-12, "{} where {least} is possible", chain.slowest);
        }
    }
}

fn model(blocks: u32) -> Model {
    Model { blocks, block_bytes: 70, block_states: 30, embedding_bytes: 150, head_bytes: 150, head_blocks: 2.0 }
}

fn plain(id: u64, fits: u64) -> Worker {
    Worker { id, memory: fits * 100, block: 1e-3, hop: 1e-3, hazard: 0.0, bandwidth: 1e4, cached: None, ends: true }
}

#[test]
fn a_thousand_workers_are_planned_in_bounded_steps() {
    let workers: Vec<Worker> = (1..=1000).map(|id| plain(id, 4 + id % 9)).collect();
    let model = model(36);
    assert!(states(&model, &workers) <= 1000 * 37 * 12 * 13, "{}", states(&model, &workers));
    let deal = deal(&model, &workers, &AIM, usize::MAX);
    deal.chains.iter().for_each(|chain| is_whole(&model, &workers, chain));
    let staged: usize = deal.chains.iter().map(|chain| chain.stages.len()).sum();
    assert!(deal.chains.len() > 150 && staged + deal.spares.len() <= 1000, "{} chains", deal.chains.len());
}

#[test]
fn downloads_are_part_of_the_cost() {
    let model = model(4);
    let has = Worker { cached: Some(Range::whole(4)), block: 2e-3, ..plain(1, 8) };
    let lacks = plain(2, 8);
    let chain = |tokens| fastest(&model, &[has, lacks], &Aim { tokens, ..AIM }).unwrap();
    assert_eq!(chain(5.0).stages[0].worker, 1, "a short life does not pay a download");
    assert_eq!(chain(1e6).stages[0].worker, 2, "a long one does");
    assert_eq!(chain(5.0).download, 0.0);
    let bytes = 4 * 70 + 150 + 150;
    assert_eq!(chain(1e6).download, f64::from(bytes) / lacks.bandwidth, "states are not downloaded");
}

#[test]
fn only_who_may_see_tokens_is_first_or_last() {
    let model = model(6);
    let others = (1..=3).map(|id| Worker { ends: false, ..plain(id, 3) });
    // The asker, for the first stage and the last.
    let asker = [plain(9, 3), plain(9, 3)];
    let workers: Vec<Worker> = others.chain(asker).collect();
    let chain = fastest(&model, &workers, &AIM).unwrap();
    assert_eq!((chain.stages.first().unwrap().worker, chain.stages.last().unwrap().worker), (9, 9));
    assert_eq!(fastest(&model, &workers[..3], &AIM), None);
}

#[test]
fn spares_hold_what_is_covered_least() {
    let model = model(8);
    let workers: Vec<Worker> = (1..=9).map(|id| plain(id, 6)).collect();
    let deal = deal(&model, &workers, &AIM, 1);
    let stages = deal.chains[0].stages.len();
    assert_eq!(deal.spares.len(), 9 - stages);
    for stage in &deal.chains[0].stages {
        let spares = deal.spares.iter().filter(|spare| spare.range == stage.range).count();
        assert!(spares >= (9 - stages) / stages, "{:?} has {spares} spares", stage.range);
    }
}
