//! Permissions of workers: the server asks the coordinator about everybody who connects (*auth callout*), and takes
//! its signed answer.
//!
//! A worker says a secret, from which its [name](anygpu_pool_worker::name) follows. It may publish under that name alone, and
//! listen to what is for it alone; so a step's sender is known by its subject, and nobody hears what others hand over.

use std::time::{SystemTime, UNIX_EPOCH};

use anygpu_pool_proto::limits::MESSAGE_BYTES;
use anygpu_pool_proto::subject;
use anygpu_pool_worker::name;
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::PoolError;

/// Where a server asks.
pub(crate) const ASKED: &str = "$SYS.REQ.USER.AUTH";
/// The account of a pool's members.
pub(crate) const ACCOUNT: &str = "POOL";
/// The user that workers connect as.
pub(crate) const WORKER: &str = "worker";

/// Kinds of keys: the first byte of one in text is `A` for an account.
const ACCOUNT_KEY: u8 = 0;
/// Subscriptions that a worker takes: its own subjects, answers, and an echo.
const SUBSCRIPTIONS: u32 = 8;
/// Time that a worker has to answer a request, a download included. In nanoseconds.
const ANSWER: u64 = 3_600_000_000_000;

/// The coordinator's key.
pub(crate) struct Authority(Ed25519KeyPair);

/// Request of a server.
#[derive(Deserialize)]
struct Claims {
    nats: Asked,
}

#[derive(Deserialize)]
struct Asked {
    server_id: Id,
    user_nkey: String,
    connect_opts: Options,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Options {
    user: String,
    pass: String,
    name: String,
}

impl Authority {
    /// The key that follows from the coordinator's password: who has that may do all in any case.
    ///
    /// *Errors*: none that is known.
    pub fn new(password: &str) -> Result<Authority, PoolError> {
        let seed = Sha256::digest(format!("anygpu pool: the key of {password}"));
        let key = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|error| PoolError::System(error.to_string()))?;
        Ok(Authority(key))
    }

    /// The public key as servers write it.
    pub fn public(&self) -> String {
        let mut bytes = vec![ACCOUNT_KEY];
        bytes.extend(self.0.public_key().as_ref());
        let sum = crc16(&bytes);
        bytes.extend(sum.to_le_bytes());
        BASE32_NOPAD.encode(&bytes)
    }

    /// The answer to a server that asks about a connection: what it may do, or that it may not connect. Nothing if the
    /// question cannot be read.
    pub fn answer(&self, question: &[u8], password: &str, is_banned: impl Fn(&str) -> bool) -> Option<String> {
        let claims = question.split(|byte| *byte == b'.').nth(1)?;
        let Claims { nats: Asked { server_id, user_nkey, connect_opts } } =
            serde_json::from_slice(&BASE64URL_NOPAD.decode(claims).ok()?).ok()?;
        let Options { user, pass, name: called } = connect_opts;
        // Words before the secret are for who looks at connections.
        let secret = called.rsplit(' ').next().filter(|secret| secret.len() >= SECRET);
        let refused = match secret {
            _ if user != WORKER || !same(&pass, password) => Some("the user or the password is another"),
            None => Some("a worker of another version; update it"),
            Some(secret) if is_banned(&name(secret)) => Some("banned"),
            Some(_) => None,
        };
        let granted = secret.filter(|_| refused.is_none()).map(|secret| self.grant(&user_nkey, &name(secret)));
        let nats = json!({
            "type": "authorization_response", "version": 2,
            "jwt": granted.unwrap_or_default(), "error": refused.unwrap_or_default(),
        });
        Some(self.sign(json!({ "sub": user_nkey, "aud": server_id.id, "nats": nats })))
    }

    /// Signs the permissions of a worker.
    fn grant(&self, key: &str, name: &str) -> String {
        let own = format!("{}.>", inboxes(name));
        let publish = [
            subject::HELLO.into(),
            subject::heartbeat(name).replace(".hb", ".*"),
            subject::out(name, 0).replace(".0", ".*"),
            subject::sent(&subject::lease("*", "*"), name),
            own.clone(),
        ];
        self.sign(json!({ "sub": key, "aud": ACCOUNT, "name": name, "nats": {
            "type": "user", "version": 2,
            "pub": { "allow": publish },
            "sub": { "allow": [subject::inbox(name), own] },
            // Answers go to subjects that only who is asked may publish at.
            "resp": { "max": 1, "ttl": ANSWER },
            "subs": SUBSCRIPTIONS, "data": -1, "payload": MESSAGE_BYTES,
        } }))
    }

    /// A token of claims (RFC 7519), as servers read it.
    fn sign(&self, mut claims: Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        claims["iss"] = self.public().into();
        claims["iat"] = now.into();
        claims["jti"] = BASE32_NOPAD.encode(&Sha256::digest(claims.to_string())).into();
        let head = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
        let text = [head, claims].map(|part| BASE64URL_NOPAD.encode(part.to_string().as_bytes())).join(".");
        let signature = BASE64URL_NOPAD.encode(self.0.sign(text.as_bytes()).as_ref());
        format!("{text}.{signature}")
    }
}

/// Digits of a secret, at least.
const SECRET: usize = 32;

/// Where a worker takes answers, before the number of the question.
pub(crate) fn inboxes(name: &str) -> String {
    format!("_INBOX.{name}")
}

/// Compared in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    Sha256::digest(a) == Sha256::digest(b)
}

/// CRC-16/XMODEM, which keys in text end with.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum: u16, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| sum << 1 ^ if sum & 0x8000 == 0 { 0 } else { 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn asks(user: &str, pass: &str, name: &str) -> Vec<u8> {
        let opts = json!({ "user": user, "pass": pass, "name": name, "lang": "rust", "protocol": 1 });
        let claims = json!({ "nats": { "server_id": { "id": "NSERVER" }, "user_nkey": "UKEY", "connect_opts": opts } });
        format!("e30.{}.e30", BASE64URL_NOPAD.encode(claims.to_string().as_bytes())).into_bytes()
    }

    /// The claims of a token that the authority signed.
    fn read(authority: &Authority, token: &str) -> Value {
        let (text, signature) = token.rsplit_once('.').unwrap();
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
        UnparsedPublicKey::new(&ED25519, authority.0.public_key()).verify(text.as_bytes(), &signature).unwrap();
        let claims = text.split('.').nth(1).unwrap();
        serde_json::from_slice(&BASE64URL_NOPAD.decode(claims.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn keys_are_written_as_servers_write_them() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let public = Authority::new("secret").unwrap().public();
        assert!(public.len() == 56 && public.starts_with('A'), "{public}");
        assert_eq!(public, Authority::new("secret").unwrap().public());
        assert_ne!(public, Authority::new("other").unwrap().public());
    }

    #[test]
    fn a_worker_may_speak_for_itself_alone() {
        let authority = Authority::new("secret").unwrap();
        let name = name(SECRET);
        let answer = authority.answer(&asks("worker", "pass", &format!("anygpu worker {SECRET}")), "pass", |_| false);
        let answer = read(&authority, &answer.unwrap());
        assert_eq!((&answer["aud"], &answer["sub"]), (&json!("NSERVER"), &json!("UKEY")));
        assert_eq!((&answer["nats"]["type"], &answer["nats"]["error"]), (&json!("authorization_response"), &json!("")));
        let user = read(&authority, answer["nats"]["jwt"].as_str().unwrap());
        assert_eq!((&user["aud"], &user["iss"]), (&json!("POOL"), &json!(authority.public())));
        let allow = |what: &str| -> Vec<String> {
            user["nats"][what]["allow"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().into()).collect()
        };
        let publish = ["pool.hello", "pool.up.NAME.*", "pool.out.NAME.*", "pool.w.*.s.*.NAME", "_INBOX.NAME.>"];
        assert_eq!(allow("pub"), publish.map(|it| it.replace("NAME", &name)));
        assert_eq!(allow("sub"), ["pool.w.NAME.>", "_INBOX.NAME.>"].map(|it| it.replace("NAME", &name)));
    }

    #[test]
    fn others_may_not_connect() {
        let authority = Authority::new("secret").unwrap();
        let known = format!("anygpu worker {SECRET}");
        let (known, banned) = (known.as_str(), name(SECRET));
        for (question, banned) in [
            (asks("worker", "guessed", known), ""),
            (asks("coordinator", "pass", known), ""),
            (asks("worker", "pass", "anygpu worker"), ""),
            (asks("worker", "pass", known), &*banned),
        ] {
            let answer = read(&authority, &authority.answer(&question, "pass", |it| it == banned).unwrap());
            assert_eq!(answer["nats"]["jwt"], "");
            assert_ne!(answer["nats"]["error"], "");
        }
        assert_eq!(authority.answer(b"nothing", "pass", |_| false), None);
        assert_eq!(authority.answer(b"a.b.c", "pass", |_| false), None);
    }
}
