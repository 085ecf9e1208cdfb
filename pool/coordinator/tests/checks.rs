//! Workers that lie are found and banned, those that are honest are not, and who has no part in a text is not heard.

mod world;

use anygpu::Choice;
use anygpu_pool::{End, Request};
use anygpu_pool_proto::{Assigned, Reply, Sampling, Seam, Step, StepDone, Token, Wire, reply, subject};
use anygpu_pool_worker::Message;
use world::{TOKENS, World, alone};

const PROMPT: &str = "Once upon a time, in a small town";
const GREEDY: Sampling = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 };
const DRAWN: Sampling = Sampling { temperature: 0.9, top_k: 40, top_p: 0.95, seed: 5 };
/// Three stages, and for each a worker that checks and one that settles.
const WORKERS: usize = 9;
/// Texts until the stage in question has been checked with near certainty: each has one of three checked.
const TEXTS: u64 = 40;

fn ask(world: &mut World, session: u64, prompt: &[u32], sampling: Sampling) {
    let (prompt, stop) = (prompt.to_vec(), Vec::new());
    let request = Request { session, user: 1, prompt, most: TOKENS, sampling, stop };
    let out = world.dispatcher.ask(world.now(), request);
    world.carry(out);
}

/// A chain that is up, and spares that are ready.
fn up(check: f64) -> World {
    let mut world = World::new(Seam::F32, check);
    (0..WORKERS).for_each(|_| world.join(Choice::Cpu));
    world.until(|world| world.dispatcher.picture().spares.len() == WORKERS - 3);
    world
}

#[test]
fn a_worker_that_lies_is_found_the_first_time_that_it_is_looked_at() {
    for (stage, sampling) in [(0, GREEDY), (1, DRAWN), (2, GREEDY), (2, DRAWN)] {
        let (prompt, answer) = alone(PROMPT, sampling);
        let mut world = up(1.0);
        let liar = world.stage(stage);
        world.liars.insert(liar.clone());
        for session in 1..=TEXTS {
            ask(&mut world, session, &prompt, sampling);
            world.until(|world| world.ended.contains_key(&session));
            // A dispute is settled though the text is over.
            world.until(|world| {
                let counts = world.dispatcher.coordinator().counts();
                counts.disputed == counts.banned
            });
            if !world.banned.is_empty() {
                break;
            }
        }
        assert_eq!(world.banned, [liar], "stage {stage}");
        let counts = world.dispatcher.coordinator().counts();
        assert_eq!((counts.disputed, counts.banned), (1, 1), "{counts:?}");
        // The chain is mended by somebody honest.
        ask(&mut world, TEXTS + 1, &prompt, sampling);
        world.until(|world| world.ended.contains_key(&(TEXTS + 1)));
        assert_eq!((world.ended[&(TEXTS + 1)], &world.said[&(TEXTS + 1)]), (End::Length, &answer), "stage {stage}");
        assert_eq!(world.banned.len(), 1, "nobody who is honest is banned");
    }
}

#[test]
fn a_checker_that_lies_is_banned_and_texts_are_as_they_were() {
    let (prompt, answer) = alone(PROMPT, DRAWN);
    let mut world = up(1.0);
    let liar = world.dispatcher.picture().spares[0].worker.clone().unwrap();
    world.liars.insert(liar.clone());
    let mut session = 0;
    while world.banned.is_empty() && session < 2 * TEXTS {
        session += 1;
        ask(&mut world, session, &prompt, DRAWN);
        world.until(|world| world.ended.contains_key(&session));
        world.until(|world| {
            let counts = world.dispatcher.coordinator().counts();
            counts.disputed == counts.banned
        });
        assert_eq!((world.ended[&session], &world.said[&session]), (End::Length, &answer));
    }
    assert_eq!(world.banned, [liar]);
}

/// The backends of this machine.
fn kinds() -> Vec<Choice> {
    let skipped = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let mut kinds = vec![Choice::Cpu];
    for (name, kind) in [("webgl", Choice::WebGl), ("webgpu", Choice::WebGpu)] {
        match skipped.split(',').any(|skip| skip == name) {
            true => println!("SKIPPED {name}: there is no driver"),
            false => kinds.push(kind),
        }
    }
    kinds
}

#[test]
fn honest_workers_agree_whatever_computes() {
    let (kinds, (prompt, _)) = (kinds(), alone(PROMPT, DRAWN));
    for seam in [Seam::F32, Seam::F16] {
        let mut world = World::new(seam, 1.0);
        let kind = |at: usize| at % kinds.len();
        (0..6).for_each(|at| world.join(kinds[kind(at)]));
        world.until(|world| world.dispatcher.picture().spares.len() == 3);
        let picture = world.dispatcher.picture();
        let of = |worker: &Option<String>| kind(worker.as_ref().map_or(0, |it| it[1..].parse::<usize>().unwrap() - 1));
        let mixed = picture.spares.iter().filter(|spare| {
            let stage = picture.chains[0].stages.iter().find(|stage| stage.first == spare.first);
            stage.is_some_and(|stage| of(&stage.worker) != of(&spare.worker))
        });
        assert!(mixed.count() > 0 || kinds.len() == 1, "{picture:?}");
        for session in 1..=3 {
            ask(&mut world, session, &prompt, if session == 2 { GREEDY } else { DRAWN });
            world.until(|world| world.ended.contains_key(&session));
            world.until(|world| world.dispatcher.coordinator().counts().checked == session);
        }
        let counts = world.dispatcher.coordinator().counts();
        assert_eq!((counts.checked, counts.disputed, counts.banned), (3, 0, 0), "{seam:?}: {counts:?}");
    }
}

/// Says whatever might move a text on, in the place of somebody.
fn interferes(world: &mut World, name: &str, epoch: u64, prompt: usize) {
    let position = (world.said.get(&1).map_or(0, Vec::len) + prompt) as u32;
    for at in position - 1..=position + 1 {
        world.says(&subject::out(name, 1), &Token { session: 1, epoch, position: at, id: 7, margin: 1.0 });
        // Of another session than the subject's.
        world.says(&subject::out(name, 2), &Token { session: 1, epoch, position: at, id: 7, margin: 1.0 });
        world.says(&subject::done(name), &StepDone { session: 1, epoch, position: at - 1, rows: 1, micros: 1 });
    }
    let ready = Assigned { epoch, fetched: 1, total: 1, ready: true, block_micros: 1 };
    world.says(&subject::progress(name), &Reply { what: Some(reply::What::Assigned(ready)) });
}

#[test]
fn who_has_no_part_in_a_text_is_not_heard() {
    let (prompt, answer) = alone(PROMPT, GREEDY);
    let mut world = up(0.0);
    ask(&mut world, 1, &prompt, GREEDY);
    for tokens in 1..TOKENS {
        world.until(|world| world.tokens(1) >= tokens);
        let spare = world.dispatcher.picture().spares[0].worker.clone().unwrap();
        let stages = [0, 1, 2].map(|stage| world.stage(stage));
        // The first epochs are of assignments: chains are past them.
        let epochs = [0, 1, 1000];
        for epoch in epochs {
            for name in [&spare, "w0123456789abcdef", "nobody"] {
                interferes(&mut world, name, epoch, prompt.len());
            }
            // Not even those who have a part, out of turn or in an epoch that is past or to come.
            stages.iter().for_each(|name| interferes(&mut world, name, epoch, prompt.len()));
        }
        // To the stages themselves: a lease that is none, and one that is, in an epoch that is past.
        let real = stages.each_ref().map(|name| world.passed[name].clone());
        for Message { subject: to, payload } in real {
            let Ok(step) = Step::from_wire(&payload) else { continue };
            let (lease, _) = subject::parted(&to).unwrap();
            let guess = Step { lease: "guess".into(), ..step.clone() };
            let past = Step { epoch: 0, position: step.position + 1, ..step };
            let worker = to.split('.').nth(2).unwrap();
            for (to, step) in [(subject::lease(worker, "guess"), guess), (lease.to_owned(), past)] {
                let message = Message { subject: subject::sent(&to, &spare), payload: step.to_wire().unwrap() };
                let out = world.pass(message);
                world.carry(out);
            }
        }
    }
    world.until(|world| world.ended.contains_key(&1));
    assert_eq!((world.ended[&1], &world.said[&1]), (End::Length, &answer));
    let counts = world.dispatcher.coordinator().counts();
    assert!(counts.stale > 100 && counts.lost == 0 && counts.banned == 0, "{counts:?}");
}
