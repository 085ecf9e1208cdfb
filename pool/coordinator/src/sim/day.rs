//! A pool under a load that follows the sun.

use std::f64::consts::TAU;

use rand::RngExt;

use super::{
    chance::{exponential, weibull},
    report::Report,
    scenario::{Failure, Scenario},
    world::{Later, World},
};

/// Simulates a pool: who comes and leaves, who asks, and what becomes of it.
pub fn day(scenario: &Scenario) -> Report {
    let mut world = World::new(scenario);
    for worker in 0..scenario.workers {
        let late = match scenario.failure {
            // As many are there at first as on average.
            Failure::Weibull { scale, away, .. } if world.chance.random_bool((away / (scale + away)).min(1.0)) => {
                weibull(&mut world.chance, away, 1.0)
            }
            _ => world.chance.random_range(0.0..1.0),
        };
        world.after(late, Later::Come(worker));
    }
    let rate = scenario.requests * scenario.workers as f64 / 3600.0;
    if rate > 0.0 {
        world.after(0.0, Later::Ask);
    }
    while let Some(what) = world.next() {
        match what {
            Later::Ask => {
                // Thinned from the highest rate.
                let most = rate * (1.0 + scenario.sun);
                let region = world.chance.random_range(0..scenario.regions.max(1));
                if world.chance.random_bool((rate * height(&world, region) / most).clamp(0.0, 1.0)) {
                    world.ask();
                }
                let next = exponential(&mut world.chance, most);
                world.after(next, Later::Ask);
            }
            Later::Come(worker) => come(&mut world, worker),
            Later::Leave(worker, life) => {
                if world.leave(worker, life)
                    && let Failure::Weibull { away, .. } = scenario.failure
                {
                    // At night they stay away for longer.
                    let height = height(&world, world.region(worker)).max(0.1);
                    let time = weibull(&mut world.chance, away / height, 1.0);
                    world.after(time, Later::Come(worker));
                }
            }
            Later::Tell(..) | Later::Hop(_) | Later::Other(_) => {}
        }
    }
    world.finish()
}

fn come(world: &mut World, worker: u64) {
    world.come(worker);
    if let Failure::Weibull { scale, shape, .. } = world.scenario.failure {
        let stay = weibull(&mut world.chance, scale, shape);
        let life = world.life(worker);
        world.after(stay, Later::Leave(worker, life));
    }
}

/// How high the sun stands in a region: what requests and presences are multiplied with.
fn height(world: &World, region: u32) -> f64 {
    let scenario = &world.scenario;
    let turn = world.now as f64 * 1e-6 / 86_400.0 + f64::from(region) / f64::from(scenario.regions.max(1));
    1.0 + scenario.sun * (TAU * turn).sin()
}
