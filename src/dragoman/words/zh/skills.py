"""Skills, commands and plugins that lie in files."""

TEXTS = {
    # --- frontmatter
    "skills.frontmatter_no_end": "前言部分缺少结尾的 ---",
    "skills.frontmatter_line": "这一行既不是键，也不属于任何键：{text}",
    "skills.frontmatter_deep": "嵌套过深",
    # --- files
    "skills.problem": "{where}：{reason}",
    "skills.more_problems": "另有 {count} 个文件未按原样使用",
    "skills.leads_out": "它是指向 {folder} 之外的链接，因此不予读取；请复制其所指的内容",
    "skills.too_long": "它超过 {most} 字节：请缩短",
    "skills.not_text": "它不是文本",
    "skills.not_utf8": "它不是 UTF-8（第 {position} 字节）：请保存为 UTF-8",
    "skills.not_json": "它不是 JSON：{reason}",
    "skills.not_toml": "它不是 TOML：{reason}",
    "skills.not_a_table": "它不是 JSON 对象",
    "skills.not_whole": "其中文件或文件夹过多，有些没有查看",
    # --- skills, commands, plugins
    "skills.too_many": "技能超过 {most} 个，其余不使用",
    "skills.too_many_commands": "命令超过 {most} 个，其余不使用",
    "skills.too_many_plugins": "插件超过 {most} 个，其余不使用",
    "skills.no_agent": "它要求由代理 {name!r} 运行，但没有这个代理：请定义它，或删除这一行",
    "skills.no_name": "它没有可用的名称：请用字母、数字、- _ .，最多 64 个字符",
    "skills.no_description": "它没有说明：请在前言中加一行 `description: …`",
    "skills.command_name": "命令不能这样命名：文件及其文件夹的名称请用字母、数字、- _ .",
    "skills.empty_command": "它没有提示",
    "skills.no_prompt": "它没有文本 `prompt`",
    "skills.plugin_gone": "插件列为已安装，但其文件夹已不存在",
    # --- carrying one out
    "skills.prompt_too_long": "此命令的提示超过 {most} 个字符",
    "skills.runs": "$ {command}",
    "skills.not_run": "未运行：{command}（{reason}）",
    "skills.model_not_used": "未使用命令指定的模型 {name}，仍用 {now}：{reason}",
    "skills.file_not_read": "未读取：{path}（{reason}）",
    # --- lists
    "skills.none": "这里没有技能",
    "skills.not_found": "没有名为 {name} 的技能{hint}",
    "skills.needs_name": "请指明要显示哪个技能",
    "skills.by_user_only": "只能用 /{name}",
    "skills.tokens": "{count} 个技能；开始时告诉模型的内容为 {tokens} 个 token",
    "skills.from_files": "来自文件：",
    "skills.hidden": "{name}（{origin}）未使用：已有同名的内置命令",
    "skills.no_plugins": "这里没有安装插件",
    # --- hooks of packages
    "skills.hooks_not_loaded": "{source}：plugins.hooks：{reason}",
    "skills.not_hooks": "{source}：plugins.hooks：{name} 是 {kind}，不是钩子",
    "skills.config_skills": "技能：",
    "skills.config_commands": "文件中的命令：",
    "skills.config_subagents": "子代理：",
    "skills.config_plugins": "插件：",
    "skills.config_problems": "未使用或未全部使用：",
    "skills.config_switched_off": "已关闭，不读取其任何内容：{keys}",
}
