#include "base/cgroup.h"

#include "test.h"

enum { SIZE = 128 };

static const char *job_of(const char *path)
{
	static char job[SIZE];
	return ll_cgroup_slurm_job(path, job, sizeof job) ? job : "none";
}

TEST(a_job_of_slurm_is_known_by_the_group_that_only_root_can_make)
{
	assert_string_equal(job_of("/slurm/uid_1000/job_42/step_0/task_0"), "/slurm/uid_1000/job_42");
	assert_string_equal(job_of("/slurm_n1/uid_1000/job_42"), "/slurm_n1/uid_1000/job_42");
	assert_string_equal(job_of("/slurmstepd.scope/job_42/step_extern/user/task_0"), "/slurmstepd.scope/job_42");
	assert_string_equal(job_of("/system.slice/slurmstepd.scope/job_42/step_0"),
			    "/system.slice/slurmstepd.scope/job_42");
	assert_string_equal(job_of("/system.slice/n1_slurmstepd.scope/job_7"),
			    "/system.slice/n1_slurmstepd.scope/job_7");
}

TEST(a_group_that_a_user_can_make_is_none)
{
	assert_string_equal(job_of("/user.slice/user-1000.slice/slurm/uid_1000/job_42"), "none");
	assert_string_equal(job_of("/user.slice/slurmstepd.scope/job_42"), "none");
	assert_string_equal(job_of("/job_42"), "none");
	assert_string_equal(job_of("/slurm/uid_1000/job_"), "none");
	assert_string_equal(job_of("/slurm/uid_1000/job_42x"), "none");
	assert_string_equal(job_of("/slurm"), "none");
	assert_string_equal(job_of("/"), "none");
	assert_string_equal(job_of(""), "none");
}

TEST(the_scope_of_slurm_is_one_that_only_root_can_make)
{
	assert_true(ll_cgroup_is_in_slurm_scope("/slurmstepd.scope"));
	assert_true(ll_cgroup_is_in_slurm_scope("/system.slice/slurmstepd.scope"));
	assert_true(ll_cgroup_is_in_slurm_scope("/system.slice/n1_slurmstepd.scope/job_7/step_0"));
	assert_false(ll_cgroup_is_in_slurm_scope("/system.slice"));
	assert_false(ll_cgroup_is_in_slurm_scope("/system.slice/slurmd.service"));
	assert_false(ll_cgroup_is_in_slurm_scope("/user.slice/slurmstepd.scope"));
	assert_false(ll_cgroup_is_in_slurm_scope("/slurm/uid_5/job_9"));
	assert_false(ll_cgroup_is_in_slurm_scope(""));
}

TEST(the_hierarchy_of_slurm_is_found_among_all_and_a_path_that_does_not_fit_is_none)
{
	char job[SIZE];
	static const char text[] =
	    "13:memory:/user.slice\n12:freezer:/slurm_n1/uid_5/job_9/step_batch\n0::/init.scope\n";
	assert_true(ll_cgroup_choose_slurm_job(text, job, sizeof job));
	assert_string_equal(job, "/slurm_n1/uid_5/job_9");
	assert_false(ll_cgroup_choose_slurm_job(text, job, sizeof "/slurm_n1/uid_5/job_9" - 1));
	assert_false(ll_cgroup_choose_slurm_job("0::/init.scope\n", job, sizeof job));
	assert_false(ll_cgroup_choose_slurm_job("", job, sizeof job));
}
