"""The texts of `--help` and `/help` in Chinese. What the user types is not translated, so the columns are those of the English text."""

CHINESE_HELP: dict[str, str] = {}

CHINESE_HELP["run"] = """\
用法： dragoman [options]                     在终端中对话
       dragoman "QUESTION" [options]          以这个问题开始对话
       dragoman -p "PROMPT" [options]         给出一个回答，然后退出
       COMMAND | dragoman -p "PROMPT"         同上，针对 COMMAND 的输出
       dragoman COMMAND [options]             auth、models、config、doctor、sessions、context、approvals、
                                              trust、hooks、mcp、agents、skills、plugins、fleet、serve-local、
                                              acp、view、completions；见 COMMAND --help

  -p, --prompt TEXT        您的要求；-p 之后的内容就是提示，即使是 "--this"
  -m, --model NAME         部署/模型，见 dragoman models；默认依次为您配置的模型、已设置密钥的服务、
                           本机上的服务器（先询问）、在本进程中运行的小模型
      --fallback NAME      服务一直拒绝（速率限制、配额用完、过载）时改用的模型；可多次给出，按顺序尝试
      --output-format F    text（默认）、json（最后输出一个对象）、stream-json（每个事件一个）
      --approval MODE      plan       只读取
                           default    编辑先询问，命令在写入之前询问；用 -p 时拒绝
                           auto-edit  工作区内的编辑直接运行，命令在写入之前询问
                           auto       命令也直接运行，但只在沙箱中
                           在前三种方式下，沙箱级别为 1 或 2 时命令在工作区只读的情况下直接运行；否则只有
                           只读取的命令（ls、grep……）直接运行。您选择“为此文件夹保存”而允许的内容，
                           除 plan 外都直接运行，用 -p 时也一样：dragoman approvals
      --sandbox LEVEL      auto（默认）：依次尝试 1 自有命名空间、2 bubblewrap、3 只用 Landlock，用第一个可用的；
                           off：不用；external：不用我们的沙箱，因为 dragoman 所在的容器或虚拟机就是边界，
                           此时允许 auto（docs/operate/ci.md）
      --allow RULE         符合的内容不经询问即运行：--allow 'pytest *'、--allow 'edit src/**'；可多次给出，
                           --deny RULE 亦然：拒绝符合的内容。拒绝优先。
                           沙箱之外：只有 'outside git push' 之类的规则有效
      --max-turns N        模型回答 N 次之后停止（默认 100）
      --include DIR        工具还可以使用的目录；可多次给出
  -C, --directory DIR      在 DIR 中工作；其他相对路径都相对于它
      --trust              这次启动信任此文件夹：使用其 .dragoman/config.toml、AGENTS.md、DRAGOMAN.md、
                           GEMINI.md、CLAUDE.md 和规则；dragoman trust 会记住信任
      --config FILE        用 FILE 代替您的 config.toml
      --yes                同意下载，以及使用找到的服务器；从不代表同意工具要做的事
      --lang en|zh         程序的语言
      --no-color           不用颜色；NO_COLOR=1 也一样
      --debug              把日志写到标准错误；不含密钥
      --worktree [NAME]    在单独的 git 工作树中工作，位于仓库旁边；若没有改动，之后会移除
  -c, --continue           继续此文件夹最近的会话及其模型，除非给出 -m
  -r, --resume [ID]        继续此 ID 的会话（见 dragoman sessions）；不给 ID 时由您挑选，用 -p 时是此文件夹
                           最近的会话
      --search [HOW]       直接在网络上搜索提示本身，并给出结果及其来源：dragoman --search "北京天气"。
                           给出 HOW 时指定模型如何搜索：tool（google_web_search）、grounding（由其服务自行
                           搜索）或 off（不搜索）
      --text-tools         用文本描述工具，并从模型的文本中读取调用
  -h, --help               本说明
  -V, --version            版本
      --                   选项到此为止

退出码
    0  已回答                        54  某个工具完全无法工作（磁盘已满）
    1  内部错误                      55  需要受信任的文件夹
   41  没有密钥，或密钥被拒绝        56  模型在原地打转
   42  输入有误                      57  服务失败
   44  没有沙箱                      58  被拒绝或过滤
   52  配置有误                      59  在输出上限处被截断
   53  达到 --max-turns              60  预算已用完
   61  没有符合所要求类型的回答      62  钩子拒绝了提示或结束了运行
  130  Ctrl-C（SIGTERM 143，SIGHUP 129，读取方已离开 141）

环境变量
  密钥       GEMINI_API_KEY、GOOGLE_API_KEY、ANTHROPIC_API_KEY、OPENAI_API_KEY；dragoman models 列出更多
  设置       DRAGOMAN_MODEL、DRAGOMAN_FALLBACK（名称以逗号分隔）、DRAGOMAN_APPROVAL、
             DRAGOMAN_MAX_TURNS、DRAGOMAN_LANG、DRAGOMAN_HOME
  其他       NO_COLOR、COLUMNS、HTTPS_PROXY、SSL_CERT_FILE
"""

CHINESE_HELP["models"] = """\
用法： dragoman models [list] [NAME] [options]
       dragoman models pull NAME [--yes] [--from FILE]
       dragoman models remove NAME

列出部署及其模型，以及可在本机运行的模型权重。给出 NAME 时只列出名称含有它的部署和模型。价格为每百万
token 的美元数。只显示密钥的名称，从不显示密钥本身。会询问本机上的服务器提供哪些模型。

pull 下载权重。它会先询问，能继续中断的下载，并且只在 SHA-256 正确时保留文件。您自己的 GGUF 文件无需
下载：-m local//path/to/it.gguf。

      --yes                不经询问即下载
      --from FILE          从 FILE 复制权重，而不下载
      --output-format F    text（默认）或 json
      --config FILE        用 FILE 代替您的 config.toml
  -C, --directory DIR      路径相对于 DIR
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["config"] = """\
用法： dragoman config [options]

显示每项设置的值及其来源（默认、您的文件、项目的文件、环境变量或选项），以及文件的位置。
docs/reference/configuration.md 解释每项设置。然后列出您和别人带来的内容，各注明文件和行号：MCP 服务器、规则、钩子、技能、命令、
子代理和插件；文件有什么问题；以及哪些程序的文件不读取（[sources]）。

      --json               供程序使用；同 --output-format json
      --output-format F    text（默认）或 json
      --trust              显示用 --trust 运行时的设置
      --config FILE        用 FILE 代替您的 config.toml
  -C, --directory DIR      使用 DIR 中的项目
  -m, --model NAME, --fallback NAME, --approval MODE, --sandbox LEVEL, --allow RULE, --deny RULE,
      --max-turns N, --lang en|zh, --no-color
                           显示用这些选项运行时的设置
      --debug
  -h, --help               本说明
"""

CHINESE_HELP["doctor"] = """\
用法： dragoman doctor [options]
       dragoman doctor --live [--record FILE] [--yes] [options]

检查运行所需的一切：配置、模型和密钥、与服务的连接、ripgrep、终端、磁盘。没有问题时以 0 退出，否则
以 1 退出。

用 --live 时，对模型能做的每件事（流式输出、工具、思考、图片、提示缓存、搜索……）发送一个小请求，并显示
哪些可用。它会说明最多花费多少，并先询问。

      --live               向模型发送真实请求
      --record FILE        与 --live 一起：把每次交互记录到 FILE（不含您的密钥），用于报告问题
      --yes                与 --live 一起：不询问；FILE 存在时将其替换
      --offline            不尝试连接服务
      --output-format F    text（默认）或 json
  -m, --model NAME         检查此模型，而不是会被选中的模型
      --fallback NAME      也检查这个：服务一直拒绝时由它继续
      --sandbox LEVEL      检查沙箱的这个级别
      --trust              使用项目的配置
      --config FILE        用 FILE 代替您的 config.toml
  -C, --directory DIR      使用 DIR 中的项目
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["sessions"] = """\
用法： dragoman sessions [list] [--all]       此文件夹的会话，或所有文件夹的会话
       dragoman sessions resume [ID]          继续会话，同 dragoman --resume [ID]
       dragoman sessions show [ID]            打印整个会话
       dragoman sessions search TEXT [--all]  查找含有这些词的提示、回答和标题
       dragoman sessions fork [ID] [--at N]   复制会话，到条目 N 为止
       dragoman sessions rewind [ID] --to N   回到条目 N；不删除任何内容
       dragoman sessions undo [ID]            恢复其最近一次运行更改的文件
       dragoman sessions redo [ID]            收回最近一次撤销
       dragoman sessions export [ID]          写成 Markdown，或 --as 指定的格式
       dragoman sessions import FILE          从 gemini-cli、Claude Code、Codex、pi、Cline 或我们的 JSON 导入
       dragoman sessions delete ID            永久删除会话；先询问

ID 是 latest（不写也是它），或 list 显示的 ID；写出更多开头字符或全部也可以。show 会打印每个条目的编号 N。

      --all                所有文件夹的会话
      --at N, --to N       条目的编号
      --as FORMAT          markdown（默认）、html、json（全部内容；可再次导入）、record（gemini-cli 的格式）、atif（供 Harbor
                           等程序使用的轨迹）；--atif 与之相同
  -o, --output FILE        写入只有您能读取的 FILE；其扩展名决定格式
      --yes                不经询问即删除；覆盖 FILE
      --force              undo、redo：也恢复之后被更改的文件和受保护的文件
      --output-format F    list、show、search：text（默认）或 json
  -C, --directory DIR      DIR 的会话；路径相对于它
      --config FILE        用 FILE 代替您的 config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["approvals"] = """\
用法： dragoman approvals [list]              您在各文件夹中长期允许的内容
       dragoman approvals revoke ID           撤销一项
       dragoman approvals revoke --all        全部撤销

在询问时回答“为此文件夹保存”即保存一项批准。此后它在那里不经询问即运行，对话中和用 -p 时都一样：所有
编辑、恰好一条命令、一个工具，或一个工具与一台主机。Dragoman 自身的文件，以及会让其他程序运行的文件，
仍会询问。正在运行的会话从下一次调用起会再次询问。您信任的文件夹也会列出。

ID 是 list 显示的 ID，或其开头。

      --all                与 revoke 一起：所有文件夹中的全部
      --output-format F    text（默认）或 json
  -C, --directory DIR      先列出 DIR 的批准
      --config FILE        用 FILE 代替您的 config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["trust"] = """\
用法： dragoman trust [FOLDER]                信任文件夹：其自身的文件可以配置 Dragoman
       dragoman trust --revoke [FOLDER]       撤销信任，或撤销“否”：会再次询问

文件夹受信任之前，其中的任何内容都不会作为配置、记忆或规则读取。有内容可读时，对话会询问一次；用 -p 时
无人可问，因此用此命令说明。不给 FOLDER 时：当前文件夹的仓库，或文件夹本身。

“是”涵盖其中的文件夹，直到下一个仓库。主文件夹、/ 以及人人可写的文件夹从不整体信任。已保存的内容：
dragoman approvals。

      --revoke             忘掉关于此文件夹的回答
      --output-format F    text（默认）或 json
  -C, --directory DIR      路径相对于 DIR
      --config FILE        用 FILE 代替您的 config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["auth"] = """\
用法： dragoman auth [list]                   哪些服务有密钥，来自何处
       dragoman auth add SERVICE              保存密钥；会询问密钥，或从标准输入读取
       dragoman auth remove SERVICE           删除保存的密钥

SERVICE 是 dragoman models 列出的部署：gemini、anthropic、openai，或您自己的部署。密钥保存在系统的密钥环中
（需要附加组件 keyring，在克隆中运行 pip install '.[keyring]'），没有密钥环时保存在只有您能读取的文件中；
add 会说明是哪一种。密钥从不显示，也从不从命令行读取，因为其他程序能看到命令行。

环境变量优先于保存的密钥。

      --output-format F    text（默认）或 json
      --config FILE        用 FILE 代替您的 config.toml
  -C, --directory DIR      路径相对于 DIR
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["acp"] = """\
用法： dragoman acp [选项]

在标准输入和输出上使用 Agent Client Protocol，让编辑器（Zed、JetBrains、Neovim、Emacs 等）使用 Dragoman。
此命令由编辑器启动，各编辑器的设置见 docs/use/editors.md。在哪个文件夹工作、使用哪个会话，由编辑器决定。

  -m, --model NAME         部署/模型，见 dragoman models
      --fallback NAME      服务一直拒绝时改用的模型；可多次给出
      --approval MODE      plan、default、auto-edit 或 auto：新会话开始时的方式
      --sandbox LEVEL      auto（默认）、1、2、3、off 或 external
      --allow RULE, --deny RULE, --include DIR, --max-turns N
                           与不带命令时相同：dragoman --help
      --trust              信任编辑器打开的每个文件夹，不询问
      --sign-in            在此终端中询问服务名和密钥，保存后退出
      --config FILE        用 FILE 代替您的 config.toml
  -C, --directory, --output-format, --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["fleet"] = """\
用法： dragoman fleet run TASKS               执行许多任务：每行一个 JSON；- 从标准输入读取
       dragoman fleet resume NAME             继续尚未完成的部分；已完成的不会再运行
       dragoman fleet retry NAME --failed     重新运行未通过的任务，或 NAME 之后写出的任务
       dragoman fleet status [NAME]           结果如何：汇总，以及未通过的任务
       dragoman fleet show NAME TASK          一个任务：回答、检查、改动、花费和会话
       dragoman fleet diff A B                另一个任务组中哪些结果不同
       dragoman fleet export NAME             results.jsonl，以及 SWE-bench 格式的 preds.json
       dragoman fleet work TASK               对一个任务的一次尝试，供其他调度程序使用

每个任务都有自己的进程、会话和工作区副本，并且只有一个结果。无论何时被终止，resume 都能接着做。所有内容都在
fleet/NAME 中：任务的字段和各个文件见 docs/operate/fleet.md。

  -m, --model NAME         用于没有指定模型的任务，与普通运行相同
      --approval MODE      plan、default、auto-edit 或 auto（默认：auto，在沙箱内）
      --sandbox LEVEL      与普通运行相同；external：以容器为边界
      --on PLACE           工作进程在哪里运行（默认：本机）：ray 或 ray://主机:端口
      --cpus N, --memory-mb N  Ray 为每个工作进程预留的资源（默认：1 个 CPU）
      --trust              信任工作区带来的内容：它们的配置、钩子和服务器
      --name NAME          任务组的名称（默认：文件的名称）
      --workers N          同时运行多少个（默认：4）
      --attempts K         每个任务尝试几次（默认：1）
      --budget-usd X       整个任务组花费达到此数后，不再启动也不再发送
      --template FILE      一个提示，或 JSON 形式的任务，其中 {{字段}} 代表该行的字段
      --failed             用于 retry：所有未通过的
      --atif               用于 export：同时为每个会话写出轨迹
      --take-over          接着运行不是在这里启动、或之后被改动的任务组：先显示它会用什么设置运行
      --force              继续由另一个 Dragoman 版本开始的任务组
      --attempt N, --epoch E, --out DIR, --scratch DIR
                           用于 work：第几次尝试、它的第几次启动、结果放在哪里、副本建在哪里
      --hide PATH          用于 work：任务的命令和工具不能读取它；可以写多次
  -C, --directory DIR      路径相对于 DIR，fleet/ 也在那里
      --config FILE        用 FILE 代替您的 config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               本说明

退出码：0 全部通过，1 未全部通过，60 预算用完，130 已取消
"""

CHINESE_HELP["serve-local"] = """\
用法： dragoman serve-local [MODEL] [--port N]

通过三种协议（Chat Completions、Responses 和 Anthropic Messages）把本机上的模型提供给其他程序。MODEL 是
dragoman models pull 的名称，或 GGUF 文件的路径；默认是运行时会使用的小模型。Ctrl-C 停止。

      --port N             监听的端口（默认 8080）；总是在 127.0.0.1 上
      --yes                不经询问即下载缺少的权重
  -C, --directory DIR      路径相对于 DIR
      --config FILE        用 FILE 代替您的 config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               本说明

环境变量
  DRAGOMAN_LOCAL_MODEL     用此 GGUF 文件代替其他模型
  DRAGOMAN_LOCAL_THREADS   线程数（默认：空闲核心数）
"""

CHINESE_HELP["view"] = """\
用法： dragoman view [SESSION] [--talk]

在浏览器中显示您的会话：每个请求中模型究竟看到了什么，花费多少，哪些来自缓存，省略了什么以及原因。正在进行的会话会实时
显示。只在 127.0.0.1 上监听，打印的地址只能使用一次。SESSION 是 dragoman sessions 显示的 ID，或 latest。

      --talk               也在页面中对话，与终端中相同
      --port N             监听的端口（默认：任意空闲端口）
      --no-open            只打印地址，不打开浏览器
      --origin URL         页面也可以通过您的隧道在 URL 访问
      --host ADDRESS       在该地址上监听，供他人访问：必须同时给出 --tls-cert、--tls-key，并在
                           DRAGOMAN_VIEW_PASSWORD 中设置密码
      --tls-cert FILE, --tls-key FILE
                           PEM 格式的证书及其密钥
  -C, --directory DIR      latest 所指的文件夹，也是对话所在的文件夹
      --config FILE        用 FILE 代替您的 config.toml
      --output-format, --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["completions"] = """\
用法： dragoman completions SHELL             让 SHELL 补全我们命令的脚本
       dragoman completions bash              source <(dragoman completions bash)
       dragoman completions zsh               source <(dragoman completions zsh)
       dragoman completions fish              dragoman completions fish | source

把这一行写入您的 ~/.bashrc、~/.zshrc（在 compinit 之后）或 ~/.config/fish/config.fish。
补全命令、操作、选项及其值、模型和会话。

      --output-format, --lang en|zh, --no-color, --debug
  -C, --directory DIR      DIR 的会话
      --config FILE        用 FILE 代替您的 config.toml
  -h, --help               本说明
"""

CHINESE_HELP["context"] = """\
用法： dragoman context [SESSION]                下一个请求包含什么，省略了什么，为什么
       dragoman context [SESSION] --request      按将要发送的样子打印下一个请求
       dragoman context new                      新会话在这里如何开始：完整的第一条消息
       dragoman context simulate [SESSION]       其他移除方式会花费多少
       dragoman context compress [SESSION]       现在总结较早的消息
       dragoman context prune [SESSION]          现在移除所有过时的结果
       dragoman context drop ENTRY [SESSION]     移除一个结果；ENTRY 是它在表中的编号
       dragoman context keep ENTRY [SESSION]     保留一个结果，移除和总结都不动它
       dragoman context undo ENTRY [SESSION]     撤销上述选择

SESSION 是 latest（默认），或 dragoman sessions 显示的 ID。
查看不会更改任何内容，也不需要密钥。

      --all                显示所有项（长列表默认会缩短）；与 simulate 一起时也显示最佳安排
      --at N               显示条目 N 之后的状态
      --request [NAME]     逐字节打印请求的正文；其头部写到标准错误。NAME：用于另一个部署、部署/模型
                           或协议（gemini、openai_chat、openai_responses、anthropic）
      --focus TEXT         compress：总结中什么最重要
      --json               以 JSON 输出；同 --output-format json
  -C, --directory DIR      DIR 的会话
      --config FILE        用 FILE 代替您的 config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["mcp"] = """\
用法： dragoman mcp [list]                    现有的 MCP 服务器，注明文件、行号和状态
       dragoman mcp get NAME                  某个服务器提供什么：工具、提示和资源
       dragoman mcp add NAME -- COMMAND …     把一个程序加入您的 config.toml，并试用一次
       dragoman mcp add NAME URL              同上，用于通过 HTTP 访问的服务器
       dragoman mcp remove NAME               再把它去掉
       dragoman mcp test NAME                 启动或连接一次，询问它提供什么
       dragoman mcp approve NAME              同意项目配置的某个服务器
       dragoman mcp login NAME                在浏览器中登录服务器；logout NAME：退出登录

服务器取自您的 config.toml、受信任项目的 .dragoman/config.toml，以及 Claude Code、gemini-cli、Codex 和
opencode 的文件。项目配置的服务器要您同意之后才使用；对话会询问，用 -p 时则略去。其命令、参数、环境、
地址或工具有变化时会重新询问。在模型调用某个服务器的工具之前，不会启动它。它们在沙箱之外运行。
详见 docs/extend/mcp.md。

      --env NAME=VALUE     与 add 一起：给程序的变量；其中的 ${X} 在启动时填入
      --header NAME:VALUE  与 add 一起：给 URL 的请求头；其中的 ${X} 会填入
      --transport T        与 add 一起：http（默认），或最早的 sse
      --scope S            与 add 一起：user（默认），或 project，即此文件夹的 .dragoman/config.toml
      --trust              这次启动信任此文件夹
      --json               同 --output-format json
      --output-format F    text（默认）或 json
  -C, --directory DIR      指哪个文件夹的服务器
      --config FILE        用 FILE 代替您的 config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["hooks"] = """\
用法： dragoman hooks [list]                  哪些命令在哪些事件时运行，各在哪里定义
       dragoman hooks approve [ID ...]        同意此项目的钩子：全部，或指明的几个
       dragoman hooks revoke [ID ...]         收回同意：会再次询问
       dragoman hooks test EVENT [TOOL]       用虚构的输入运行符合某事件的钩子，并显示其回答

钩子是您的命令，在运行的固定时刻执行：提示发送之前、工具使用前后、回答结束时。它们取自您配置中的
[hooks]，以及 Claude Code、Codex 和 gemini-cli 的设置。它们在沙箱之外、不经询问地运行，所以项目的钩子
只在您信任的文件夹里、并且在您逐一同意之后才运行；命令或它所指的项目文件改变之前，同意一直有效。
对话会询问一次；用 -p 时由此命令来说。

      --json               同 --output-format json
      --output-format F    text（默认）或 json
      --trust              这次启动信任此文件夹
  -C, --directory DIR      指哪个文件夹的钩子
      --config FILE        用 FILE 代替您的 config.toml
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["agents"] = """\
用法： dragoman agents [list] [options]       模型可以调用的子代理，以及各在哪里定义

子代理是 .dragoman/agents、.claude/agents、.gemini/agents 和 .opencode/agents 中的 Markdown 文件，包括您自己的
和您信任的项目的。docs/extend/subagents.md 说明其中写什么。

      --json               同样的内容，供程序使用；--output-format json 也一样
      --output-format F    text（默认）或 json
      --config FILE        用 FILE 代替您的 config.toml
  -C, --directory DIR      使用 DIR 中的项目
      --trust              这次启动信任此文件夹
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["skills"] = """\
用法： dragoman skills [list]                 这里有的技能，以及各在哪里
       dragoman skills show NAME              启用时告诉模型的内容

技能是带有 SKILL.md 的文件夹：在受信任项目和您主文件夹的 .agents/skills、.claude/skills、.codex/skills、
.dragoman/skills、.gemini/skills 和 .opencode/skills 中，以及插件里。模型会被告知它们的名称和说明，在任务
合适时启用；/NAME 也可以启用。

      --output-format F    text（默认）或 json；--json 同 json
  -C, --directory DIR      DIR 的技能
      --config FILE        用 FILE 代替您的 config.toml
      --trust              这次启动信任此文件夹
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""

CHINESE_HELP["plugins"] = """\
用法： dragoman plugins [list]                已安装的插件，以及各带来什么

Claude Code 的插件、gemini-cli 的扩展，以及 .agents/plugins 和 .dragoman/plugins 中带有 plugin.json 的文件夹
（Agent Plugins 1.0）。它们带来的技能和命令名为 PLUGIN:NAME。

      --output-format F    text（默认）或 json；--json 同 json
  -C, --directory DIR      DIR 的插件
      --config FILE        用 FILE 代替您的 config.toml
      --trust              这次启动信任此文件夹
      --lang en|zh, --no-color, --debug
  -h, --help               本说明
"""
