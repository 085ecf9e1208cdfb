//! The messages are those of `pool.proto`: names, numbers and kinds.

use std::fmt::Debug;

use anygpu_pool_proto::*;
use prost_reflect::{DescriptorPool, DynamicMessage, EnumDescriptor};

fn schema() -> DescriptorPool {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/pool.proto");
    let files = protox::compile([path], [env!("CARGO_MANIFEST_DIR")]).expect("the schema compiles");
    DescriptorPool::from_file_descriptor_set(files).expect("the schema is complete")
}

/// `message` sets every field that the schema has, and no other, under the schema's names and numbers.
fn agrees<M: prost::Message + Default + PartialEq + Debug>(pool: &DescriptorPool, name: &str, message: &M) {
    let descriptor = pool.get_message_by_name(&format!("anygpu.pool.v1.{name}")).unwrap_or_else(|| panic!("{name}?"));
    let bytes = message.encode_to_vec();
    let read = DynamicMessage::decode(descriptor.clone(), &bytes[..]).expect(name);
    assert_eq!(read.unknown_fields().count(), 0, "{name} has a field that the schema lacks");
    let said = format!("{message:?}");
    for field in descriptor.fields().filter(|field| field.containing_oneof().is_none()) {
        assert!(read.has_field(&field), "{name}.{} is not written, or under another number", field.name());
        assert!(said.contains(&format!("{}: ", field.name())), "{name}.{} has another name in {said}", field.name());
    }
    let mut again = Vec::new();
    prost::Message::encode(&read, &mut again).expect(name);
    assert_eq!(M::decode(&again[..]).expect(name), *message, "{name} is read differently");
}

fn range() -> Range {
    Range { first: 3, end: 9, embedding: true, head: true }
}

#[test]
fn messages_are_those_of_the_schema() {
    let pool = schema();
    let text = || "a".to_string();
    let digest = || vec![7; 32];
    let hop = Hop { lease: text(), subject: text() };
    let sampling = Sampling { temperature: 0.5, top_k: 4, top_p: 0.9, seed: 6 };
    agrees(&pool, "Range", &range());
    agrees(&pool, "Hop", &hop);
    agrees(&pool, "Sampling", &sampling);
    agrees(
        &pool,
        "Hello",
        &Hello {
            version: 1,
            rung: Rung::Webgl.into(),
            memory: 3,
            block_micros: 4,
            bandwidth: 5,
            hop_micros: 6,
            sessions: 7,
            model: digest(),
            cached: vec![range()],
            connection: text(),
            worker: text(),
            ends: text(),
        },
    );
    agrees(&pool, "Welcome", &Welcome { worker: text(), heartbeat_millis: 2 });
    agrees(
        &pool,
        "Heartbeat",
        &Heartbeat { block_micros: 1, hop_micros: 2, memory_free: 3, visible: true, sessions: 5, connection: text() },
    );
    agrees(&pool, "Manifest", &Manifest { bytes: 1, chunk: 2, digests: digest() });
    agrees(
        &pool,
        "Step",
        &Step {
            session: 1,
            epoch: 2,
            lease: text(),
            position: 4,
            rows: 5,
            width: 6,
            seam: Seam::F16.into(),
            tokens: vec![8],
            activations: vec![9],
            sampling: Some(sampling),
            replay: true,
            route: vec![hop],
        },
    );
    agrees(&pool, "StepDone", &StepDone { session: 1, epoch: 2, position: 3, rows: 4, micros: 5 });
    agrees(&pool, "Token", &Token { session: 1, epoch: 2, position: 3, id: 4, margin: 5.0 });

    let assign = Assign {
        epoch: 1,
        address: text(),
        model: digest(),
        range: Some(range()),
        seam: Seam::F32.into(),
        context: 6,
        sessions: 7,
        head_blocks: 8.0,
    };
    let open = Open { session: 1, epoch: 2, lease: text() };
    let drop = Drop { session: 1, epoch: 2 };
    let export = Export { session: 1, epoch: 2, to: text() };
    let replay = Replay { session: 1, epoch: 2, from: 3, to: 4, lease: text(), subject: text() };
    let release = Release { epoch: 1 };
    let assigned = Assigned { epoch: 1, fetched: 2, total: 3, ready: true, block_micros: 5 };
    let done = Done { session: 1, epoch: 2, position: 3 };
    let failure = Failure { session: 1, epoch: 2, reason: Reason::Digest.into(), detail: text() };
    agrees(&pool, "Assign", &assign);
    agrees(&pool, "Open", &open);
    agrees(&pool, "Drop", &drop);
    agrees(&pool, "Export", &export);
    agrees(&pool, "Import", &Import { session: 1, epoch: 2, lease: text(), position: 4, snapshot: vec![5] });
    agrees(&pool, "Replay", &replay);
    agrees(&pool, "Release", &release);
    agrees(&pool, "Assigned", &assigned);
    agrees(&pool, "Done", &done);
    agrees(&pool, "Failure", &failure);

    use control::What as Asked;
    let asked = [
        ("assign", Asked::Assign(assign)),
        ("open", Asked::Open(open)),
        ("drop", Asked::Drop(drop)),
        ("export", Asked::Export(export)),
        ("replay", Asked::Replay(replay)),
        ("release", Asked::Release(release)),
    ];
    oneof_agrees(&pool, "Control", &asked, |what| Control { what: Some(what.clone()) });
    use reply::What as Said;
    let said =
        [("assigned", Said::Assigned(assigned)), ("done", Said::Done(done)), ("failure", Said::Failure(failure))];
    oneof_agrees(&pool, "Reply", &said, |what| Reply { what: Some(what.clone()) });
}

/// Each of `all` is written under its name in the schema, and the schema has no more.
fn oneof_agrees<W, M>(pool: &DescriptorPool, name: &str, all: &[(&str, W)], message: impl Fn(&W) -> M)
where
    M: prost::Message + Default + PartialEq + Debug,
{
    let descriptor = pool.get_message_by_name(&format!("anygpu.pool.v1.{name}")).expect(name);
    assert_eq!(descriptor.fields().count(), all.len(), "{name} has more in the schema");
    for (field, what) in all {
        let message = message(what);
        agrees(pool, name, &message);
        let read = DynamicMessage::decode(descriptor.clone(), &message.encode_to_vec()[..]).expect(name);
        assert!(read.has_field_by_name(field), "{name}.{field} is written under another number");
    }
}

#[test]
fn enumerations_are_those_of_the_schema() {
    let pool = schema();
    let same = |name: &str, ours: &dyn Fn(i32) -> Option<String>| {
        let all: EnumDescriptor = pool.get_enum_by_name(&format!("anygpu.pool.v1.{name}")).expect(name);
        for value in all.values() {
            let ours = ours(value.number()).unwrap_or_else(|| panic!("{} is missing", value.name()));
            let theirs = value.name().to_lowercase().replace('_', "");
            assert_eq!(theirs, format!("{name}{ours}").to_lowercase());
        }
        assert_eq!(ours(all.values().count() as i32), None, "{name} has one more");
    };
    same("Seam", &|n| Seam::try_from(n).ok().map(|it| format!("{it:?}")));
    same("Rung", &|n| Rung::try_from(n).ok().map(|it| format!("{it:?}")));
    same("Reason", &|n| Reason::try_from(n).ok().map(|it| format!("{it:?}")));
}
