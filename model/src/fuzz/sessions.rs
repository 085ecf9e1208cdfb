//! Snapshots with false contents. Their digest is valid, so that the code after its check is reached.

use super::random::Random;
use sha2::{Digest, Sha256};

/// Values that replace a number.
const NUMBERS: [&str; 12] =
    ["0", "1", "2", "3", "5", "-1", "18446744073709551615", "4294967296", "1e300", "null", "\"x\"", "[[]]"];

/// Makes a log of a few records in which numbers are replaced at random.
pub(super) fn input(number: u64) -> Vec<u8> {
    let mut random = Random(number);
    let mut log = Vec::new();
    for _ in 0..1 + random.below(3) {
        let mut any = |usual: &str| {
            let wrong = random.below(6) == 0;
            if wrong { NUMBERS[random.below(NUMBERS.len())].to_owned() } else { usual.to_owned() }
        };
        let header = format!(
            r#"{{"model":"m","architecture":"llama","blocks":[{},{}],"kv_cache":"f32","sampling":{},"request":{{"prompt":{},
            "max_tokens":{},"stop":[],"stop_tokens":{},"finish":null}},"from":{},"position":{},
            "tokens":{},"states":[{{"name":"k","appended":true,"rows":{},"row_bytes":{}}},{{"name":"s","appended":{},
            "rows":{},"row_bytes":{}}}]}}"#,
            any("0"),
            any("2"),
            any("null"),
            any("2"),
            any("9"),
            any("null"),
            any("0"),
            any("3"),
            any("5"),
            any("3"),
            any("4"),
            any("false"),
            any("2"),
            any("6"),
        );
        // The usual body has 5 tokens, 3 rows of 4 bytes and 2 rows of 6.
        let usual = 5 * 4 + 3 * 4 + 2 * 6;
        let body = if random.below(4) == 0 { random.below(2 * usual) } else { usual };
        let mut record = b"AGS1".to_vec();
        record.extend((header.len() as u32).to_le_bytes());
        record.extend((body as u64).to_le_bytes());
        record.extend(header.bytes());
        record.extend((0..body).map(|_| random.below(256) as u8));
        record.extend(Sha256::digest(&record));
        if random.below(8) == 0 {
            record.truncate(random.below(record.len()));
        }
        log.extend(record);
    }
    log
}
