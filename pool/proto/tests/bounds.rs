//! Nothing that comes over the wire is trusted.

use anygpu_pool_proto::*;
use proptest::prelude::*;

fn step() -> Step {
    Step {
        session: 1,
        epoch: 1,
        lease: "l-1".to_string(),
        position: 5,
        rows: 2,
        width: 8,
        seam: Seam::F16.into(),
        activations: vec![0; 32],
        route: vec![Hop { lease: "l-2".to_string(), subject: subject::lease("ada", "l-2") }],
        ..Step::default()
    }
}

/// Asserts that a good step is refused after `change`, with an error that names the field.
fn refused(field: &str, change: impl FnOnce(&mut Step)) {
    let mut it = step();
    change(&mut it);
    let error = it.check().expect_err(field).to_string();
    assert!(error.contains(field), "{error}");
    assert!(Step::from_wire(&prost::Message::encode_to_vec(&it)).is_err(), "{field}: decoded all the same");
}

#[test]
fn steps_that_contradict_themselves_are_refused() {
    assert_eq!(Step::from_wire(&step().to_wire().unwrap()).unwrap(), step());
    refused("rows", |it| it.rows = 0);
    refused("rows", |it| it.rows = limits::ROWS + 1);
    refused("position", |it| it.position = u32::MAX);
    refused("activations", |it| it.activations.push(0));
    refused("activations", |it| it.seam = Seam::F32.into());
    refused("seam", |it| it.seam = 99);
    refused("width", |it| it.width = u32::MAX);
    refused("tokens", |it| it.tokens = vec![1; 3]);
    refused("activations", |it| it.tokens = vec![1; 2]);
    refused("lease", |it| it.lease = "a.b".to_string());
    refused("route", |it| it.route[0].subject = "pool.>".to_string());
    refused("route", |it| it.route = vec![it.route[0].clone(); limits::STAGES + 1]);
    refused("temperature", |it| {
        it.sampling = Some(Sampling { temperature: f32::NAN, top_p: 1.0, ..Sampling::default() });
    });
    refused("top_p", |it| it.sampling = Some(Sampling { top_p: f32::NAN, ..Sampling::default() }));
}

#[test]
fn too_long_a_message_is_refused_before_it_is_read() {
    let bytes = vec![0xff; limits::CONTROL_BYTES + 1];
    assert!(matches!(Control::from_wire(&bytes), Err(ProtoError::TooMuch { .. })));
    let long = Import { lease: "l".to_string(), snapshot: vec![1; limits::MESSAGE_BYTES], ..Import::default() };
    assert!(matches!(long.to_wire(), Err(ProtoError::TooMuch { .. })));
}

#[test]
fn ranges_are_within_a_model() {
    let hello = |range| Hello {
        version: VERSION,
        rung: Rung::Cpu.into(),
        block_micros: 1,
        bandwidth: 1,
        sessions: 1,
        model: vec![0; 32],
        cached: vec![range],
        ..Hello::default()
    };
    let good = Range { first: 0, end: 3, embedding: true, head: false };
    hello(good).check().unwrap();
    hello(Range { end: limits::BLOCKS + 1, ..good }).check().unwrap_err();
    hello(Range { first: 4, embedding: false, ..good }).check().unwrap_err();
    hello(Range { first: 1, ..good }).check().unwrap_err();
    hello(Range { end: 0, embedding: false, ..good }).check().unwrap_err();
}

#[test]
fn a_manifest_has_a_digest_for_each_chunk() {
    let manifest = |digests| Manifest { bytes: 100_000, chunk: 65_536, digests: vec![1; digests] };
    assert_eq!(manifest(64).chunks(), 2);
    manifest(64).check().unwrap();
    assert_eq!(manifest(64).digest(1), Some(&[1; 32][..]));
    assert_eq!(manifest(64).digest(2), None);
    manifest(63).check().unwrap_err();
    manifest(96).check().unwrap_err();
    Manifest { chunk: 0, ..manifest(64) }.check().unwrap_err();
}

/// Decoding may refuse and must not panic; what is accepted is written as it was read.
fn any_bytes<M: Wire + PartialEq>(bytes: &[u8]) {
    if let Ok(message) = M::from_wire(bytes) {
        let again = message.to_wire().expect("what was accepted can be sent");
        assert!(M::from_wire(&again).expect("and is accepted again") == message);
    }
}

fn every_kind(bytes: &[u8]) {
    any_bytes::<Hello>(bytes);
    any_bytes::<Welcome>(bytes);
    any_bytes::<Heartbeat>(bytes);
    any_bytes::<Control>(bytes);
    any_bytes::<Reply>(bytes);
    any_bytes::<Assigned>(bytes);
    any_bytes::<Import>(bytes);
    any_bytes::<Failure>(bytes);
    any_bytes::<Manifest>(bytes);
    any_bytes::<Step>(bytes);
    any_bytes::<StepDone>(bytes);
    any_bytes::<Token>(bytes);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        every_kind(&bytes);
    }

    #[test]
    fn damaged_messages_never_panic(at in any::<prop::sample::Index>(), with in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut bytes = step().to_wire().unwrap();
        let index = at.index(bytes.len());
        bytes[index] = with;
        bytes.truncate(cut.index(bytes.len()) + 1);
        every_kind(&bytes);
    }
}
