//! Texts of a pool whose workers are lost, in one process.

mod world;

use anygpu::Choice;
use anygpu_pool::{End, Request};
use anygpu_pool_proto::{Sampling, Seam};
use world::{TOKENS, World, alone};

#[test]
fn texts_of_a_pool_are_those_of_one_machine_whatever_is_lost() {
    let greedy = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 };
    let drawn = Sampling { temperature: 0.9, top_k: 40, top_p: 0.95, seed: 5 };
    let texts = [("Once upon a time, in a small town", greedy), ("The dog and the cat", drawn)];
    let expected = texts.map(|(prompt, sampling)| alone(prompt, sampling));
    let mut world = World::new(Seam::F32, 0.0);
    (0..7).for_each(|_| world.join(Choice::Cpu));
    for (session, ((prompt, _), (_, sampling))) in (1..).zip(expected.iter().zip(texts)) {
        let request =
            Request { session, user: session, prompt: prompt.clone(), most: TOKENS, sampling, stop: Vec::new() };
        let out = world.dispatcher.ask(world.now(), request);
        world.carry(out);
    }
    // Each stage is lost once: the spare that takes it over has a snapshot, or has not.
    for (stage, tokens) in [(1, 5), (0, 11), (2, 17)] {
        world.until(|world| world.tokens(1) >= tokens && world.tokens(2) >= tokens);
        world.lose(stage);
        world.join(Choice::Cpu);
    }
    world.until(|world| world.ended.len() == 2);
    for (session, (_, answer)) in (1..).zip(&expected) {
        assert_eq!(world.ended[&session], End::Length);
        assert_eq!(world.said[&session], *answer, "session {session}");
    }
    let counts = world.dispatcher.coordinator().counts();
    assert!(counts.lost == 3 && counts.promoted + counts.recruited >= 3 && counts.banned == 0, "{counts:?}");
}

#[test]
fn a_text_ends_with_the_token_that_ends_it() {
    let greedy = Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 };
    let (prompt, answer) = alone("Once upon a time", greedy);
    let (at, last) = answer.iter().enumerate().skip(5).find(|(at, token)| !answer[..*at].contains(token)).unwrap();
    let mut world = World::new(Seam::F32, 0.0);
    (0..3).for_each(|_| world.join(Choice::Cpu));
    let request = Request { session: 1, user: 1, prompt, most: TOKENS, sampling: greedy, stop: vec![*last] };
    let out = world.dispatcher.ask(world.now(), request);
    world.carry(out);
    world.until(|world| !world.ended.is_empty());
    assert_eq!((world.ended[&1], &*world.said[&1]), (End::Stop, &answer[..=at]));
}
