"""Sessions in a git worktree of their own."""

TEXTS = {
    "worktrees.no_git": "--worktree needs git, which was not found",
    "worktrees.no_repository": "--worktree needs a git repository, and {path} is in none",
    "worktrees.no_commit": "--worktree needs a commit to start from, and this repository has none yet; commit something first",
    "worktrees.bad_name": "{name!r} cannot be the name of a worktree: letters, digits, '-', '_' and '.', at most 60",
    "worktrees.not_made": "the worktree {path} was not made: {reason}",
    "worktrees.git_elsewhere": "{path} leads elsewhere, and git would write there",
    "worktrees.conditional": "the repository's configuration includes another file on a condition ({key}), so nobody knows what it runs",
    "worktrees.unfiltered": "filters such as git-lfs did not run: the repository sets {key}, which they may obey",
    "worktrees.submodule": "--worktree does not work in a submodule ({path}): start it in {outer}",
    "worktrees.in_use": "another session works in the worktree {path} too, so it stays, on the branch {branch}",
    "worktrees.made": "working in the new worktree {path}, on the branch {branch}",
    "worktrees.entered": "working in the worktree {path}, on the branch {branch}",
    "worktrees.left_behind": "{count:uncommitted change stays|uncommitted changes stay} in the main tree: a worktree starts at a commit",
    "worktrees.removed": "nothing was changed, so the worktree {path} and the branch {branch} were removed",
    "worktrees.kept": (
        "the work is in {path}, on the branch {branch}\n"
        "  go on:   dragoman -C {quoted} -c\n"
        "  merge:   {commit}git merge {branch}\n"
        "  remove:  git worktree remove {force}{quoted} && git branch -D {branch}"
    ),
    "worktrees.commit_first": "git -C {quoted} add -A && git -C {quoted} commit, then ",
}
