"""在独立 git worktree 中的会话。"""

TEXTS = {
    "worktrees.no_git": "--worktree 需要 git，但没有找到",
    "worktrees.no_repository": "--worktree 需要 git 仓库，而 {path} 不在仓库中",
    "worktrees.no_commit": "--worktree 需要从一个提交开始，而此仓库还没有提交；请先提交",
    "worktrees.bad_name": "{name!r} 不能用作 worktree 的名称：只能是字母、数字、'-'、'_' 和 '.'，最多 60 个字符",
    "worktrees.not_made": "没有建立 worktree {path}：{reason}",
    "worktrees.git_elsewhere": "{path} 指向别处，git 会写到那里",
    "worktrees.conditional": "仓库的配置只在某些条件下才包含另一个文件（{key}），因此无法知道它会运行什么",
    "worktrees.unfiltered": "没有运行 git-lfs 之类的过滤器：仓库设置了 {key}，过滤器可能会照它执行",
    "worktrees.submodule": "--worktree 不能在子模块（{path}）中使用：请在 {outer} 中启动",
    "worktrees.in_use": "另一个会话也在 worktree {path} 中工作，因此它保留在分支 {branch} 上",
    "worktrees.made": "在新的 worktree {path} 中工作，分支为 {branch}",
    "worktrees.entered": "在 worktree {path} 中工作，分支为 {branch}",
    "worktrees.left_behind": "主工作区有 {count} 处未提交的改动，不会带过去：worktree 从最后一次提交开始",
    "worktrees.removed": "没有改动，已删除 worktree {path} 和分支 {branch}",
    "worktrees.kept": (
        "改动在 {path}，分支为 {branch}\n"
        "  继续：  dragoman -C {quoted} -c\n"
        "  合并：  {commit}git merge {branch}\n"
        "  删除：  git worktree remove {force}{quoted} && git branch -D {branch}"
    ),
    "worktrees.commit_first": "先 git -C {quoted} add -A && git -C {quoted} commit，再 ",
}
