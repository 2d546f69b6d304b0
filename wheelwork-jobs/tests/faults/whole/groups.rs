//! Groups: jobs, and one that runs when all of them have ended.

use super::features::KEYLESS;
use super::oracle::Sort;
use super::{NODES, Play, ms};
use std::time::SystemTime;
use wheelwork_jobs::{Group, NewJob};

/// So many jobs are in a group.
const MEMBERS: u32 = 3;

/// The number of the first member of a group.
pub(super) const FIRST_MEMBER: u32 = 1_000_000;

impl Play {
    pub(super) async fn group(&self, job: u32, due: SystemTime) {
        let numbers: Vec<_> = (0..MEMBERS).map(|n| FIRST_MEMBER + MEMBERS * job + n).collect();
        match fastrand::u8(..4) {
            0 => self.group_one_by_one(job, &numbers, due).await,
            1 | 2 => self.group_with_a_unique_member(job, numbers, due).await,
            _ => self.group_in_one_call(job, &numbers, due).await,
        }
    }

    fn members(&self, numbers: &[u32], due: SystemTime) -> Vec<NewJob> {
        numbers.iter().map(|n| self.new_job(*n, *n, due)).collect()
    }

    fn last(&self, job: u32) -> NewJob {
        NewJob::new(Sort::Last.kind(), &job).unwrap().due(SystemTime::now())
    }

    fn note_group(&self, job: u32, last: &NewJob, members: &[u32]) {
        self.note(job, last, SystemTime::now());
        self.oracle().follows(job, members.to_vec());
    }

    /// Without the members, there is no group.
    async fn group_one_by_one(&self, job: u32, numbers: &[u32], due: SystemTime) {
        let members = self.members(numbers, due);
        let last = Group::of(&members).then(self.last(job)).unwrap();
        self.note_group(job, &last, numbers);
        let numbers = numbers.iter().chain([&job]).copied();
        self.store_one_by_one(numbers.zip(members.into_iter().chain([last]))).await;
    }

    async fn store_one_by_one(&self, jobs: impl Iterator<Item = (u32, NewJob)>) {
        let node = self.node(fastrand::usize(..NODES));
        for (number, new) in jobs {
            if node.schedule(new).await.is_err() {
                return;
            }
            self.oracle().stored(number, self.now());
        }
    }

    /// The first member is the same as others, and one of these may stand for it.
    async fn group_with_a_unique_member(&self, job: u32, mut numbers: Vec<u32>, due: SystemTime) {
        let (mark, period) = (fastrand::u8(..KEYLESS), ms(fastrand::u64(50..3_000)));
        let unique = self.new_job(numbers[0], mark.into(), due).unique_for(period);
        let mut members = self.members(&numbers[1..], due);
        members.insert(0, unique.clone());
        let group_of_members = Group::of(&members).then(self.last(job));
        let Some(first) = self.store_unique(numbers[0], mark, period, unique).await else { return };
        numbers[0] = self.number(first).unwrap();
        let ids = members.iter().map(NewJob::id).skip(1).chain([first]);
        // Whichever is not refused has to wait for the job that stands there.
        let last = group_of_members.or_else(|_| Group::of_ids(ids).then(self.last(job))).unwrap();
        self.note_group(job, &last, &numbers);
        let numbers = numbers.into_iter().chain([job]);
        self.store_one_by_one(numbers.zip(members.into_iter().chain([last])).skip(1)).await;
    }

    /// Somebody stores the key of a member. The last job is stored after all members, or not at all.
    async fn group_in_one_call(&self, job: u32, numbers: &[u32], due: SystemTime) {
        let mut members = self.members(numbers, due);
        let key = format!("member-{job}");
        members[0] = members[0].clone().key(&key);
        let last = Group::of(&members).then(self.last(job)).unwrap();
        self.note_group(job, &last, numbers);
        self.contend(job, key, async {
            let node = self.node(fastrand::usize(..NODES));
            let stored = node.schedule_all([last].into_iter().chain(members)).await;
            let (now, mut oracle) = (self.now(), self.oracle());
            let all: Vec<_> = stored.iter().map(Result::is_ok).collect();
            assert!(
                !all[0] || all.iter().all(|stored| *stored),
                "a group is stored in part: {stored:?}"
            );
            for (number, _) in
                [&job].into_iter().chain(numbers).zip(all).filter(|(_, stored)| *stored)
            {
                oracle.stored(*number, now);
            }
        })
        .await;
    }
}
