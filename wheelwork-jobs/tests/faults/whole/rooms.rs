//! A kind of which one node holds few jobs, and all of these are due much later. What is due at once has to come in.

use super::oracle::Sort;
use super::{NODES, Play, ms};
use std::time::{Duration, SystemTime};
use wheelwork_jobs::Kind;

/// The node that holds them. It has no other kind.
pub(super) const TIGHT_NODE: usize = 3;

/// So many it holds.
const ROOM: usize = 4;

/// The number of the first job that is due much later.
pub(super) const FAR: u32 = 5_000_000;

/// The window of the node.
pub(super) const WINDOW: Duration = Duration::from_secs(7_200);

const FAR_AWAY: Duration = Duration::from_secs(3_600);

/// A job that is due is claimed before its node has prolonged its life so often. It looks for jobs each time.
const BEATS: i64 = 10;

/// The database counts how often the node that has the room prolongs its life, and how often it has done so while a job
/// waits for its first claim.
const NOTES: &str = "
CREATE SEQUENCE beats;
CREATE FUNCTION beats() RETURNS bigint LANGUAGE sql AS 'SELECT last_value FROM beats';
CREATE TABLE waits (id uuid PRIMARY KEY, since bigint NOT NULL DEFAULT beats(), until bigint);

CREATE FUNCTION note_beat() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    PERFORM nextval('beats') FROM wheelwork_jobs WHERE kind = 'tight' AND owner = NEW.id LIMIT 1;
    RETURN NULL;
END$$;
CREATE TRIGGER beats AFTER UPDATE OF expires ON wheelwork_nodes FOR EACH ROW EXECUTE FUNCTION note_beat();

CREATE FUNCTION note_wait() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO waits (id) VALUES (NEW.id);
    END IF;
    UPDATE waits SET until = beats() WHERE id = NEW.id AND until IS NULL AND NEW.owner IS NOT NULL;
    RETURN NULL;
END$$;
CREATE TRIGGER stored AFTER INSERT ON wheelwork_jobs FOR EACH ROW
WHEN (NEW.kind = 'tight' AND NEW.due <= statement_timestamp()) EXECUTE FUNCTION note_wait();
CREATE TRIGGER found AFTER UPDATE OF owner ON wheelwork_jobs FOR EACH ROW
WHEN (NEW.kind = 'tight') EXECUTE FUNCTION note_wait()";

pub(super) fn is_far(job: u32) -> bool {
    job >= FAR
}

pub(super) fn kind() -> Kind {
    Kind::new(Sort::Tight.kind()).most_held(ROOM)
}

impl Play {
    /// From now on the database notes how long jobs wait for room.
    pub(super) async fn note_waits(&self) {
        self.0.client.batch_execute(NOTES).await.unwrap();
    }

    /// More jobs than there is room for, all of them due much later.
    pub(super) async fn fill_room(&self) {
        let jobs = FAR..FAR + 2 * ROOM as u32;
        let due = |job| SystemTime::now() + FAR_AWAY + ms(1_000) * (job % 10);
        let new = jobs.map(|job| self.new_job(job, job, due(job)));
        self.node(TIGHT_NODE).schedule_all(new).await;
    }

    /// A job that is due at once.
    pub(super) async fn urgent_beside_a_full_room(&self, job: u32) {
        let new = self.new_job(job, job, SystemTime::now()).due(ms(0));
        if self.node(fastrand::usize(..NODES)).schedule(new).await.is_ok() {
            self.oracle().stored(job, self.now());
        }
    }

    /// By the order in which the database has noted what happened.
    pub(super) async fn judge_waits(&self) {
        let waits = "SELECT id::text, coalesce(until, beats()) - since FROM waits
            ORDER BY 2 DESC LIMIT 1";
        let Some(longest) = self.0.client.query_opt(waits, &[]).await.unwrap() else { return };
        let (id, beats): (String, i64) = (longest.get(0), longest.get(1));
        assert!(beats <= BEATS, "job {id} was due at once, and waits for room since {beats} beats");
    }
}
