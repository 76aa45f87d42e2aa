//! Time in the names of runs and in records.

/// `20261129-231855`, UTC.
pub(crate) fn utc_stamp(seconds: u64) -> String {
    let ([year, month, day], time) = (date(seconds), seconds % 86_400);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", time / 3600, time / 60 % 60, time % 60)
}

/// Milliseconds since 1970 as `2026-11-29T23:18:55.250Z` (ISO 8601).
pub fn utc_time(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let ([year, month, day], time) = (date(seconds), seconds % 86_400);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", milliseconds % 1000)
}

/// Year, month and day in UTC (Hinnant's days-to-civil).
fn date(seconds: u64) -> [u64; 3] {
    let days = seconds / 86_400;
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    [year_of_era + era * 400 + u64::from(month <= 2), month, day]
}

#[cfg(test)]
mod tests {
    use super::{utc_stamp, utc_time};

    #[test]
    fn a_stamp_is_the_date_and_time_in_utc() {
        assert_eq!(utc_stamp(0), "19700101-000000");
        assert_eq!(utc_stamp(951_782_399), "20000228-235959");
        assert_eq!(utc_stamp(951_782_400), "20000229-000000");
        assert_eq!(utc_stamp(1_798_761_599), "20261231-235959");
        assert_eq!(utc_time(1_798_761_599_042), "2026-12-31T23:59:59.042Z");
    }
}
