//! How far runs are. A report is of one claim: it is not shown for a later one.

use super::connect::Call;
use super::ends::{in_ascii, is_foreign};
use super::rows::get;
use super::{Inner, columns, sql, uuid};
use crate::job::{JobId, Progress};
use crate::store::{Claim, Result};
use tokio_postgres::Row;

/// Notes the progress of the claims ($1, $2): the parts that are done $3, of all $4, texts $5. Passes over rows that
/// somebody has locked. It changes no column of an index.
const REPORT: &str = concat!(
    sql::claimed!(
        "$1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]",
        "id, epoch, done, of, text", "held.owner IS NOT NULL", ", ended.done, ended.of, ended.text"
    ),
    "
UPDATE wheelwork_jobs AS job
SET progress_epoch = job.epoch, progress_done = mine.done, progress_of = mine.of, progress_text = mine.text
FROM mine
WHERE job.id = mine.id AND job.id = ANY (ARRAY (SELECT mine.id FROM mine))
RETURNING job.id"
);

/// The progress of the run of the job $1.
pub(crate) const PROGRESS: &str = "
SELECT progress_done, progress_of, progress_text FROM wheelwork_jobs WHERE id = $1 AND progress_epoch = epoch";

impl Inner {
    pub(super) async fn report(&self, reports: &[(Claim, Progress)]) -> Result<()> {
        let mut answer = self.update_progress(reports, str::to_owned).await;
        if answer.as_ref().is_err_and(is_foreign) {
            answer = self.update_progress(reports, in_ascii).await;
        }
        answer.map(drop)
    }

    async fn update_progress(
        &self,
        reports: &[(Claim, Progress)],
        encode: fn(&str) -> String,
    ) -> Result<Vec<Row>> {
        let mut call = self.node.call("note the progress of runs").await?;
        let claims: Vec<_> = reports.iter().map(|(claim, _)| *claim).collect();
        let (ids, epochs) = columns(&claims);
        let numbers = |number: fn(&Progress) -> u64| -> Vec<i64> {
            reports.iter().map(|(_, progress)| number(progress).cast_signed()).collect()
        };
        let (done, of) = (numbers(|progress| progress.done), numbers(|progress| progress.of));
        let texts: Vec<_> = reports.iter().map(|(_, progress)| encode(&progress.text)).collect();
        call.query(REPORT, &[&ids, &epochs, &done, &of, &texts]).await
    }
}

/// The progress of the run of a job.
pub(super) async fn of(call: &mut Call<'_>, id: JobId) -> Result<Option<Progress>> {
    let rows = call.read(PROGRESS, &[&uuid(id)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let number = |column| get::<i64>(row, column).map(i64::unsigned_abs);
    Ok(Some(Progress { done: number(0)?, of: number(1)?, text: get(row, 2)? }))
}
