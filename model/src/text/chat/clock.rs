//! Implementation of `strftime_now`, with which templates insert today's date.

const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [(&str, i64); 12] = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];
const DAY: i64 = 24 * 60 * 60;
/// Number of days in 400 years, after which the calendar repeats.
const CYCLE: i64 = 146_097;

/// Formats seconds since 1970-01-01, as C's `strftime` does in the C locale. Unknown directives are copied.
pub(super) fn strftime(format: &str, seconds: i64) -> String {
    let days = seconds.div_euclid(DAY);
    let second = seconds.rem_euclid(DAY);
    let (year, month, day, of_year) = civil(days);
    let weekday = DAYS[days.rem_euclid(7) as usize];
    let (month_name, _) = MONTHS[month];
    let month = month + 1;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let directive = chars.next();
        let unpadded = if directive == Some('-') { chars.next() } else { None };
        match unpadded.or(directive) {
            Some('Y') => out += &year.to_string(),
            Some('y') => out += &format!("{:02}", year.rem_euclid(100)),
            Some('B') => out += month_name,
            Some('b' | 'h') => out += &month_name[..3],
            Some('A') => out += weekday,
            Some('a') => out += &weekday[..3],
            Some('p') => out += if hour < 12 { "AM" } else { "PM" },
            Some('e') => out += &format!("{day:2}"),
            Some('j') => out += &format!("{of_year:03}"),
            Some('F') => out += &format!("{year}-{month:02}-{day:02}"),
            Some('T') => out += &format!("{hour:02}:{minute:02}:{second:02}"),
            Some('%') => out.push('%'),
            Some(other) => {
                let value = match other {
                    'm' => Some(month as i64),
                    'd' => Some(day),
                    'H' => Some(hour),
                    'I' => Some((hour + 11) % 12 + 1),
                    'M' => Some(minute),
                    'S' => Some(second),
                    _ => None,
                };
                match (value, unpadded) {
                    (Some(v), Some(_)) => out += &v.to_string(),
                    (Some(v), None) => out += &format!("{v:02}"),
                    (None, _) => out.extend(['%', other]),
                }
            }
            None => out.push('%'),
        }
    }
    out
}

/// Converts days since 1970-01-01 to the year, the month from 0, the day from 1, and the day of the year from 1.
fn civil(days: i64) -> (i64, usize, i64, i64) {
    let cycles = days.div_euclid(CYCLE);
    let mut left = days.rem_euclid(CYCLE);
    let mut year = 1970;
    let leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    while left >= 365 + i64::from(leap(year)) {
        left -= 365 + i64::from(leap(year));
        year += 1;
    }
    let of_year = left + 1;
    let mut month = 0;
    for (i, &(_, length)) in MONTHS.iter().enumerate() {
        let length = length + i64::from(i == 1 && leap(year));
        month = i;
        if left < length {
            break;
        }
        left -= length;
    }
    (year + 400 * cycles, month, left + 1, of_year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(strftime("%d %b %Y", 1_721_952_000), "26 Jul 2024");
        assert_eq!(strftime("%A %-d %B, %H:%M:%S %j", 951_782_400 + 3_661), "Tuesday 29 February, 01:01:01 060");
        assert_eq!(strftime("%F %T %a %I%p %e", -1), "1969-12-31 23:59:59 Wed 11PM 31");
        assert_eq!(strftime("%q %% %", 0), "%q % %");
        assert_eq!(strftime("%Y-%m-%d", 253_402_300_799), "9999-12-31");
        assert!(strftime("%Y", i64::MIN).starts_with('-'));
    }
}
