//! Simulations are what their seed says, and mean what they say.

use anygpu_pool::sim::{Failure, Machines, Scenario, churn, day, losses};

fn short(workers: u64, seed: u64) -> Scenario {
    Scenario { seconds: 1800.0, ..Scenario::volunteers(workers, seed) }
}

#[test]
fn one_seed_gives_one_result() {
    assert_eq!(day(&short(50, 1)), day(&short(50, 1)));
    assert_ne!(day(&short(50, 1)), day(&short(50, 2)));
}

#[test]
fn without_failures_all_is_answered() {
    let scenario = Scenario { failure: Failure::Never, requests: 20.0, ..short(20, 3) };
    let report = day(&scenario);
    assert_eq!((report.lost, report.promoted, report.replayed, report.refused), (0, 0, 0, 0));
    assert!(report.answered + 10 >= report.asked && report.asked > 100, "{report}");
    assert!(report.availability > 0.7, "{report}");
}

#[test]
fn a_token_takes_the_time_of_its_chain() {
    // One worker holds all: 28 blocks of 1 ms, a head of as many bytes as 14/3 blocks, and a hop there and back.
    let scenario = Scenario {
        failure: Failure::Never,
        memory: (2 << 30, (2 << 30) + 1),
        block: (1e-3, 1.000_001e-3),
        regions: 1,
        requests: 100.0,
        cached: true,
        lap: 1,
        ..short(1, 4)
    };
    let report = day(&scenario);
    let right = 28e-3 + 14.0 / 3.0 * 1e-3 + 8e-3;
    assert!((report.token.p50 - right).abs() < 0.02 * right, "{} where {right} is right", report.token.p50);
    // Tokens of a lap that are simulated as one take the same.
    let coarse = day(&Scenario { lap: 32, ..scenario });
    assert!((coarse.token.p50 - right).abs() < 0.05 * right, "{} where {right} is right", coarse.token.p50);
}

#[test]
fn a_first_token_takes_what_it_is_made_of() {
    // A prompt of 64 rows, of which eight take as long as one token, by one worker.
    let scenario = Scenario {
        failure: Failure::Never,
        memory: (2 << 30, (2 << 30) + 1),
        block: (1e-3, 1.000_001e-3),
        regions: 1,
        requests: 20.0,
        cached: true,
        open: 50e-3,
        ask: 20e-3,
        lap: 1,
        ..short(1, 4)
    };
    let prompt = 64.0 / 8.0 * (28e-3 + 14.0 / 3.0 * 1e-3);
    let right = 20e-3 + 8e-3 + 50e-3 + prompt;
    let first = day(&scenario).first.p50;
    assert!((first - right).abs() < 0.02 * right, "{first} where {right} is right");
}

#[test]
fn churn_loses_as_many_as_the_protocol_says() {
    let failures = (0..20).map(|seed| losses(600.0, 0.0, seed).len()).sum::<usize>();
    // 222 are expected: a linear ramp, and workers that are away do not fail.
    assert!((200..=245).contains(&(failures / 20)), "{} on average", failures / 20);
}

#[test]
fn who_stands_still_is_found_out_and_comes_back() {
    let still = churn(&Machines::needed(3), 600.0, 1.0, 1).report;
    let ends = churn(&Machines::needed(3), 600.0, 0.0, 1).report;
    // A deadline is later than the end of a connection, and all go on in the end.
    assert!(still.stalled > ends.stalled && still.availability > 0.8, "{still}");
    assert!(still.answered > 100 && still.lost > 20, "{still}");
}

#[test]
fn churn_is_survived() {
    for (needed, least) in [(1, 0.97), (3, 0.90), (5, 0.80)] {
        let runs: Vec<_> = (0..10).map(|seed| churn(&Machines::needed(needed), 600.0, 0.0, seed).report).collect();
        let mean = runs.iter().map(|report| report.availability).sum::<f64>() / 10.0;
        assert!(mean >= least, "{needed} of 10 workers: {mean}");
        assert!(runs.iter().all(|report| report.refused == 0 && report.answered > 0));
    }
}
