import com.github.jcustenborder.cef.CEFParser;
import com.github.jcustenborder.cef.CEFParserFactory;
import com.github.jcustenborder.cef.Message;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;

/** Reads syslog frames, one a line, as Graylog's CEF input does. Writes source, time in ms, name and fields; texts in base64. */
class CefLines {
  public static void main(String[] args) throws Exception {
    CEFParser parser = CEFParserFactory.create();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      // Graylog removes the priority, and the version of RFC 5424.
      String frame = line.replaceFirst("^<\\d+>", "").replaceFirst("^\\d+\\s+(?=\\S)", "");
      Message message = parser.parse(frame, TimeZone.getTimeZone("UTC"), Locale.ENGLISH);
      if (message == null) {
        out.println("unread");
        continue;
      }
      StringBuilder text = new StringBuilder();
      text.append(encoded(message.host())).append(' ').append(message.timestamp().getTime()).append(' ').append(encoded(message.name()));
      for (Map.Entry<String, String> field : message.extensions().entrySet())
        text.append(' ').append(encoded(field.getKey())).append(':').append(encoded(field.getValue()));
      out.println(text);
    }
  }

  private static String encoded(String text) {
    return Base64.getUrlEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
